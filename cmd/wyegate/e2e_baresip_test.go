package main

import (
	"context"
	little "encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/wyegate/wyegate/internal/lbtest"
	"github.com/wyegate/wyegate/internal/sip"
)

// audio is a session that never carries anything.
const audio = "v=0\r\no=as 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio 9 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\n"

// silence is a second of it: 8,000 samples of 16 bits (WAVE).
func silence() string {
	const octets = 16000
	b := append([]byte("RIFF"), little.LittleEndian.AppendUint32(nil, 36+octets)...)
	b = append(b, "WAVEfmt "...)
	b = little.LittleEndian.AppendUint32(b, 16)
	for _, v := range []uint16{1, 1, 8000, 0, 16000, 0, 2, 16} {
		b = little.LittleEndian.AppendUint16(b, v)
	}
	b = little.LittleEndian.AppendUint32(append(b, "data"...), octets)
	return string(append(b, make([]byte, octets)...))
}

// baresip runs the softphone with one account and what it shall do first, until the test ends.
func baresip(t *testing.T, ca *lbtest.CA, port int, commands ...string) {
	t.Helper()
	program := needs(t, "baresip")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"ca.pem":      string(ca.Bundle()),
		"contacts":    "",
		"silence.wav": silence(),
		"accounts":    fmt.Sprintf("<sip:alice@front.example.net;transport=tls>;auth_pass=none;outbound=\"sip:127.0.0.1:%d;transport=tls\";sipnat=outbound;regint=600;answermode=auto\n", port),
		"config": fmt.Sprintf(`sip_cafile %[1]s/ca.pem
module_path /usr/lib/baresip/modules
module_tmp uuid.so
module g711.so
module aufile.so
module_tmp account.so
module_app menu.so
audio_source aufile,%[1]s/silence.wav
audio_player aufile,%[1]s/heard.wav
audio_alert aufile,/dev/null
`, dir),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"-4", "-s", "-f", dir}
	for _, c := range commands {
		args = append(args, "-e", c)
	}
	log := &logBuffer{}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		select {
		case <-ended:
		case <-time.After(5 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		if t.Failed() {
			t.Logf("baresip said: %s", tail(log.String()))
		}
	})
}

// baresip is a phone over TLS: it checks the certificate, registers over a flow, calls and is called, and either side
// hangs up.
func TestBaresipOverTLS(t *testing.T) {
	needs(t, "baresip")
	ca := lbtest.NewCA(t)
	s, err := lbtest.NewUA("as1", lbtest.Answer)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	s.SDP = audio
	n, port := secureNode(t, ca, fmt.Sprintf("{name: as1, sip: %q}", s.Addr))
	baresip(t, ca, port["tls"], "/dial sip:ping@front.example.net")
	seen := func(method string, has func(m *lbtest.Message) bool) (found *lbtest.Message) {
		t.Helper()
		n.eventually(20*time.Second, method+" at the server", func() error {
			for _, m := range s.Seen() {
				if m.MethodName() == method && has(m) {
					found = m
					return nil
				}
			}
			return fmt.Errorf("%d requests", len(s.Seen()))
		})
		return found
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// It calls, and the server hangs up.
	called := seen("ACK", func(*lbtest.Message) bool { return true })
	d := s.DialogOf(called.CallIDText())
	if d == nil {
		t.Fatal("no dialog of its call")
	}
	if m, err := d.Bye(ctx); err != nil || m.Status != 200 {
		t.Fatalf("BYE to baresip: %v, %v", m, err)
	}
	// It is called over the flow of its registration.
	r := seen("REGISTER", func(m *lbtest.Message) bool { return len(m.All(sip.Path)) > 0 })
	o := lbtest.InviteOptions{RequestURI: r.Contact(), From: "sip:as1@front.example.net"}
	for _, p := range r.All(sip.Path) {
		o.Extra = append(o.Extra, "Route: "+p)
	}
	d, m, err := s.Invite(ctx, r.Back, o)
	if err != nil || m.Status != 200 {
		t.Fatalf("INVITE to baresip: %v, %v", m, err)
	}
	if m, err := d.Bye(ctx); err != nil || m.Status != 200 {
		t.Fatalf("BYE to baresip: %v, %v", m, err)
	}
}
