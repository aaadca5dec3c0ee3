package sip

import (
	"bytes"
	"strconv"
	"time"
)

// Overload is what the oc parameters of a Via say: a client that takes part writes oc without a value and the algorithms
// it knows, a server answers with the share to be left out or the rate to be kept (RFC 7339 section 4, RFC 7415 section 3).
type Overload struct {
	Answered bool          // oc has a value: a server wrote it
	Value    uint32        // percent to leave out by loss, requests a second by rate
	Algo     []byte        // oc-algo without quotes; nil: not written
	Validity time.Duration // 500 ms unless written; 0: the server's overload is over
	Seq      uint64        // oc-seq in units of 10 microseconds; 0: not written
}

const (
	defaultValidity = 500 * time.Millisecond
	maxValidity     = time.Hour // longer ones are taken as this
)

// Overload reads the oc parameters; false when there is no oc, or one of them cannot be read.
func (v *ViaValue) Overload() (o Overload, ok bool) {
	o.Validity = defaultValidity
	good := true
	for i := 0; i < len(v.Params) && v.Params[i] == ';'; {
		name, value, has, next, fine := nextParam(v.Params, i)
		switch {
		case EqualFold(name, "oc"):
			ok = true
			if o.Answered = has; has {
				n, fits := overloadNumber(value)
				o.Value, good = n, good && fits
			}
		case EqualFold(name, "oc-algo"):
			o.Algo = bytes.Trim(value, `"`)
		case EqualFold(name, "oc-validity"):
			n, fits := overloadNumber(value)
			o.Validity, good = min(time.Duration(n)*time.Millisecond, maxValidity), good && fits
		case EqualFold(name, "oc-seq"):
			seq, fits := overloadSeq(value)
			o.Seq, good = seq, good && fits
		}
		if !fine {
			break
		}
		i = next
	}
	return o, ok && good
}

// Knows says whether an algorithm is among those of oc-algo; loss is what who names none knows (RFC 7339 section 4.2).
func (o *Overload) Knows(algo string) bool {
	if o.Algo == nil {
		return algo == "loss"
	}
	for list := o.Algo; len(list) > 0; {
		word, rest, _ := bytes.Cut(list, []byte(","))
		if EqualFold(bytes.TrimSpace(word), algo) {
			return true
		}
		list = rest
	}
	return false
}

func overloadNumber(b []byte) (uint32, bool) {
	n := uint64(0)
	for _, c := range b {
		if c < '0' || c > '9' || n > 1<<31 {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return uint32(min(n, 1<<31)), len(b) > 0
}

// overloadSeq reads 1 to 12 digits, a dot and 1 to 5 digits.
func overloadSeq(b []byte) (uint64, bool) {
	whole, part, dot := bytes.Cut(b, []byte("."))
	if !dot || len(whole) == 0 || len(whole) > 12 || len(part) == 0 || len(part) > 5 {
		return 0, false
	}
	n := uint64(0)
	for _, c := range whole {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	for i := range 5 {
		c := byte('0')
		if i < len(part) {
			c = part[i]
		}
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + uint64(c-'0')
	}
	return n, true
}

// AppendOverload appends what stands in place of a client's oc and oc-algo: the loss algorithm, that many percent for that
// long, and the time as sequence.
func AppendOverload(dst []byte, percent int, validity time.Duration, now time.Time) []byte {
	dst = append(dst, "oc="...)
	dst = strconv.AppendInt(dst, int64(percent), 10)
	dst = append(dst, `;oc-algo="loss";oc-validity=`...)
	dst = strconv.AppendInt(dst, validity.Milliseconds(), 10)
	dst = append(dst, ";oc-seq="...)
	dst = strconv.AppendInt(dst, now.Unix(), 10)
	milli := now.Nanosecond() / int(time.Millisecond)
	return append(dst, '.', byte('0'+milli/100), byte('0'+milli/10%10), byte('0'+milli%10))
}

// overloadEdits is the answer to the oc of a client: it takes the place of its oc, and what else it said of overload goes.
type overloadEdits struct {
	ops [4]Edit
	n   int
}

// make finds them in a Via that m holds; false when its client does not know the loss algorithm, or named none at all.
func (s *overloadEdits) make(m *Msg, v *ViaValue, answer []byte) bool {
	o, ok := v.Overload()
	if !ok || o.Answered || !o.Knows("loss") {
		return false
	}
	base, told := m.at(v.Params), false
	for i := 0; i < len(v.Params) && v.Params[i] == ';' && s.n < len(s.ops); {
		name, value, has, next, ok := nextParam(v.Params, i)
		end := m.at(name) + uint32(len(name))
		if has {
			end = m.at(value) + uint32(len(value))
		}
		switch {
		case EqualFold(name, "oc") && !told:
			at := m.at(name)
			s.ops[s.n], told = Edit{at, end - at, answer}, true
			s.n++
		case EqualFold(name, "oc"), EqualFold(name, "oc-algo"), EqualFold(name, "oc-validity"), EqualFold(name, "oc-seq"):
			at := base + uint32(i)
			s.ops[s.n] = Edit{at, end - at, nil}
			s.n++
		}
		if !ok {
			break
		}
		i = next
	}
	return true
}

// TellOverload answers the oc of a Via of the message; false, and nothing is changed, when its sender did not ask.
func (e *Edits) TellOverload(v *ViaValue, answer []byte) bool {
	var s overloadEdits
	if !s.make(e.m, v, answer) {
		return false
	}
	for _, o := range s.ops[:s.n] {
		if o.Put == nil {
			e.cut(Span{o.At, o.At + o.Cut})
		} else {
			e.set(op{at: o.At, cut: o.Cut, rank: replace, put: e.text(o.Put)})
		}
	}
	return true
}
