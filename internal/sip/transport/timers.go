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

// quietBeforeClose is how long a connection must have been silent to count as one without an open transaction, so that
// its age may close it: a ringing INVITE is given up after as long without a response (sip-http.md section 4).
const quietBeforeClose = 200 * time.Second
