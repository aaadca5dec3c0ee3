package transport

import "time"

// Timers are the time-outs and bounds of a flow. Zero means the default (sip-http.md section 19).
type Timers struct {
	First      time.Duration // from accept to the first whole message; 30 s
	Head       time.Duration // from the first octet of a message to the end of its head; 10 s
	Body       time.Duration // from the first octet of a message to its end; 30 s
	Idle       time.Duration // without an octet in either direction; 15 min
	Write      time.Duration // one write of what is queued; 5 s
	Linger     time.Duration // for a peer to read what was sent last before the connection is closed; 2 s
	QueueLimit int           // octets queued on one connection; 1 MiB
}

func (t *Timers) setDefaults() {
	for _, d := range []struct {
		value *time.Duration
		want  time.Duration
	}{
		{&t.First, 30 * time.Second}, {&t.Head, 10 * time.Second}, {&t.Body, 30 * time.Second},
		{&t.Idle, 15 * time.Minute}, {&t.Write, 5 * time.Second}, {&t.Linger, 2 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.want
		}
	}
	if t.QueueLimit <= 0 {
		t.QueueLimit = 1 << 20
	}
}

// askAged is how often the workers are asked whether a transaction is open on an old connection, and how long it must
// have been silent besides: an ACK or a request already under way is not met by the end of the connection.
const askAged = 500 * time.Millisecond
