package routing

import (
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var timeZero = time.Unix(1_800_000_000, 0)

const goldenDigest = 0x1f0b7562859f4df6
