package h2

import (
	"bytes"
	"testing"

	"golang.org/x/net/http2"
)

// RFC 9113 section 6.5.3: settings are processed in their order, so a value that stands twice is the last one.
func TestSettingsStandTwice(t *testing.T) {
	r := newRig(t, []string{newServer(t, rawAnswers(ok)).addr})
	c := r.dial()
	c.must(c.WriteSettings(
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: 100}, http2.Setting{ID: http2.SettingMaxFrameSize, Val: 20000},
		http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1}, http2.Setting{ID: http2.SettingInitialWindowSize, Val: 70000}))
	for {
		if f, is := c.frame().(*http2.SettingsFrame); is && f.IsAck() {
			break
		}
	}
	if got := c.ask(request("GET", "/")...); got.status != "200" || got.body != "ok" {
		t.Errorf("%+v", got)
	}
}

// What is left has each setting once, in the order of their last values; what is malformed stays for the server to refuse.
func FuzzLastOfEach(f *testing.F) {
	f.Add([]byte{0, 4, 0, 0, 0, 100, 0, 4, 0, 0, 0, 1})
	f.Add([]byte{0, 4, 0, 0, 0})
	f.Fuzz(func(t *testing.T, payload []byte) {
		frame := append([]byte{0, 0, byte(len(payload)), 4, 0, 0, 0, 0, 0}, payload...)
		got := lastOfEach(bytes.Clone(frame))
		if len(payload)%settingOctets != 0 || len(payload) > settingsMost*settingOctets {
			if !bytes.Equal(got, frame) {
				t.Fatalf("%x became %x", frame, got)
			}
			return
		}
		last, kept := map[[2]byte][]byte{}, map[[2]byte][]byte{}
		for p := payload; len(p) > 0; p = p[settingOctets:] {
			last[[2]byte(p)] = p[2:settingOctets]
		}
		for p := got[frameHead:]; len(p) > 0; p = p[settingOctets:] {
			if kept[[2]byte(p)] != nil {
				t.Fatalf("%x has a setting twice", got)
			}
			kept[[2]byte(p)] = p[2:settingOctets]
		}
		if len(kept) != len(last) || int(got[0])<<16|int(got[1])<<8|int(got[2]) != len(got)-frameHead {
			t.Fatalf("%x became %x", frame, got)
		}
		for id, v := range last {
			if !bytes.Equal(kept[id], v) {
				t.Fatalf("%x: %x is %x", frame, id, kept[id])
			}
		}
	})
}
