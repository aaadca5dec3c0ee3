package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// order is one load that the driver is told to run.
type order struct {
	Addr   string        `json:"addr"` // of the target
	Load   string        `json:"load"`
	Window int           `json:"window"`
	Rate   float64       `json:"rate"` // units a second; 0: a closed loop
	Time   time.Duration `json:"time"`
}

// outcome is what the driver saw of it.
type outcome struct {
	Count   float64 `json:"count"` // units or messages that the processor time is divided by
	Begun   float64 `json:"begun"` // loads a second in the words of order.Rate
	Rate    float64 `json:"rate"`  // count a second
	P50     float64 `json:"p50"`   // µs, of a whole unit
	P99     float64 `json:"p99"`
	Lost    float64 `json:"lost"`
	Faults  float64 `json:"faults"` // messages at the wrong server, or not as they should be
	Problem string  `json:"problem,omitempty"`
}

// ends are the callers and servers of one protocol.
type ends interface {
	// Servers are the addresses that targets send to.
	Servers() []string
	// Idle serves what comes between loads, for at most this long.
	Idle(time.Duration)
	// Run runs one load.
	Run(context.Context, order) (outcome, error)
	Close()
}

// drive is the driver: the addresses of the servers on the first line, then an outcome for every order, until the orders
// end.
func drive(ctx context.Context, e ends, orders io.Reader, out io.Writer) error {
	enc := json.NewEncoder(out)
	if err := enc.Encode(e.Servers()); err != nil {
		return fmt.Errorf("driver: %w", err)
	}
	lines := make(chan []byte)
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(orders); s.Scan(); {
			lines <- append([]byte(nil), s.Bytes()...)
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case line, more := <-lines:
			if !more {
				return nil
			}
			var o order
			if err := json.Unmarshal(line, &o); err != nil {
				return fmt.Errorf("driver: %w", err)
			}
			res, err := e.Run(ctx, o)
			if err != nil {
				res.Problem = err.Error()
			}
			if err := enc.Encode(res); err != nil {
				return fmt.Errorf("driver: %w", err)
			}
		default:
			e.Idle(20 * time.Millisecond) // probes of the targets want their answers
		}
	}
}
