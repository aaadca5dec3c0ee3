package sipproxy

import (
	"strconv"
	"time"
)

// The timers and limits of sip-http.md section 19.
const (
	timerT1 = 500 * time.Millisecond
	timerT2 = 4 * time.Second
	life    = 64 * timerT1 // of a transaction behind its last message

	ringing       = 200 * time.Second      // an INVITE with a provisional lives that long without a response
	silenceLimit  = 2 * time.Second        // INVITE without any response: one passive failure
	tryingAfter   = 200 * time.Millisecond // ST-10
	hintIdle      = 4 * time.Hour
	outwardWait   = 4 * time.Second // DNS wait of a request that goes outwards
	defaultTries  = 3
	defaultToken  = "wg" // affinity.token.sip_parameter
	mtuLimit      = 1300
	addedMaxHops  = 70
	maxRetryAfter = 300 * time.Second

	defaultEntries = 1_000_000
	defaultHints   = 1_000_000
	defaultArena   = 64 << 20
	defaultWaiting = 65_536
	defaultRecords = 32_768
	defaultParked  = 10_000
	parkedOctets   = 64 << 20

	// INVITEs watched for silence, in pendings: a pending is used again while its alarm still hangs in the queue. What
	// is not watched says nothing of its server's health.
	silent = 4
)

func appendPort(dst []byte, p uint16) []byte { return strconv.AppendUint(dst, uint64(p), 10) }
