package diam

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// What is parsed and written again is what was received: Append(Parse(b)) == b, group by group. Relayed output equals
// the input but for the edits, and an error answer can be read (diameter.md 15.3, 20).
func FuzzMessage(f *testing.F) {
	f.Add(request(f))
	f.Add(append(request(f), 0, 0, 1, 8, 0x40, 0, 0, 0))
	f.Add(make([]byte, 24))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b, 1<<20)
		if err != nil || h.Len > len(b) {
			return
		}
		msg := b[:h.Len]
		if out := append(h.Append(nil), rewrite(t, msg[HeaderLen:], 0)...); !bytes.Equal(out, msg) {
			t.Fatalf("written again:\n%x\nreceived:\n%x", out, msg)
		}
		r, err := AppendRouteRecord(nil, msg, "a.b")
		if err != nil || !bytes.Equal(r[4:len(msg)], msg[4:]) {
			t.Fatalf("relayed: %v", err)
		}
		ans, err := AppendError(nil, msg, Reply{Result: 3002, Host: "h", Realm: "r"})
		if err != nil {
			t.Fatal(err)
		}
		w := Walk(ans[HeaderLen:])
		for _, ok := w.Next(); ok; _, ok = w.Next() {
		}
		if w.Err() != nil {
			t.Fatalf("answer cannot be read: %x", ans)
		}
	})
}

// rewrite walks b, groups of groups included whatever their code, and gives the bytes back.
func rewrite(t *testing.T, b []byte, depth int) []byte {
	var out []byte
	w := Walk(b)
	for a, ok := w.Next(); ok; a, ok = w.Next() {
		head := avpHeaderLen
		if a.Flags&AVPVendor != 0 {
			head = avpVendorHeaderLen
		}
		at := len(out)
		out = binary.BigEndian.AppendUint32(out, a.Code)
		out = binary.BigEndian.AppendUint32(out, uint32(a.Flags)<<24|uint32(head+len(a.Data)))
		if head == avpVendorHeaderLen {
			out = binary.BigEndian.AppendUint32(out, a.Vendor)
		}
		out = append(out, a.Data...)
		pad := a.Raw[len(out)-at:]
		if len(pad) > 3 {
			t.Fatalf("padding of %d", len(pad))
		}
		out = append(out, pad...)
		if depth < 4 && !bytes.Equal(rewrite(t, a.Data, depth+1), a.Data) {
			t.Fatalf("group %x", a.Data)
		}
	}
	return append(out, w.Failed()...)
}

// However a stream is cut, the framer gives the same messages and the same end.
func FuzzFramer(f *testing.F) {
	f.Add(append(request(f), request(f)...), 7)
	f.Add([]byte{1, 0, 0, 0}, 1)
	f.Fuzz(func(t *testing.T, b []byte, step int) {
		whole, errWhole := frame(b, len(b))
		cut, errCut := frame(b, 1+int(uint(step)%97))
		if !bytes.Equal(whole, cut) || (errWhole == nil) != (errCut == nil) {
			t.Fatalf("whole %x %v\ncut %x %v", whole, errWhole, cut, errCut)
		}
		if !bytes.HasPrefix(b, whole) {
			t.Fatal("messages are not the stream")
		}
	})
}

func frame(in []byte, step int) (out []byte, err error) {
	f := NewFramer(4096)
	for len(in) > 0 {
		n := copy(f.Space(), in[:min(max(step, 1), len(in))])
		f.Filled(n)
		in = in[n:]
		for m, err := f.Next(); m != nil || err != nil; m, err = f.Next() {
			if err != nil {
				return out, err
			}
			out = append(out, m...)
		}
	}
	return out, nil
}
