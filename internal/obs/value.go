package obs

import (
	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// Value reads a counter, for the rates that status shows. It is for a look every few seconds, never for a message.
func Value(c prometheus.Counter) float64 {
	if c == nil {
		return 0
	}
	var m dto.Metric
	if c.Write(&m) != nil || m.Counter == nil {
		return 0
	}
	return m.Counter.GetValue()
}
