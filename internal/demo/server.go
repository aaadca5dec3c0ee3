package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/emiago/sipgo"
	"github.com/emiago/sipgo/sip"
)

// appServer is one application server: SIP over UDP and TCP, and HTTP, on ports that stay the same over stop and start.
type appServer struct {
	name      string
	transport string // how the edge is to reach it: udp or tcp
	sipPort   int
	httpPort  int
	edge      string // SIP address of the edge, for calls that the server begins
	log       *slog.Logger

	running *incarnation // nil: stopped. Owned by whoever starts and stops
}

// incarnation is a server between start and stop.
type incarnation struct {
	*appServer
	ctx    context.Context
	cancel context.CancelFunc
	ua     *sipgo.UserAgent
	client *sipgo.Client
	udp    *net.UDPConn
	tcp    *recording
	web    *recording
	pages  *http.Server
	work   sync.WaitGroup

	mu   sync.Mutex // guards legs; leaf
	legs map[string]*leg
	shut bool
}

// bindWait bounds how long a start waits for its ports: the kernel may need a moment to let them go.
const bindWait = 3 * time.Second

// start opens the sockets and serves.
func (s *appServer) start() error {
	i := &incarnation{appServer: s, legs: map[string]*leg{}}
	i.ctx, i.cancel = context.WithCancel(context.Background())
	if err := i.open(); err != nil {
		i.close()
		return fmt.Errorf("server %s: %w", s.name, err)
	}
	s.running = i
	return nil
}

// stop closes every socket at once, as a server does that dies, and waits until nothing of it runs.
func (s *appServer) stop() {
	if s.running != nil {
		s.running.close()
		s.running = nil
	}
}

func (i *incarnation) open() error {
	pages, err := bind(func() (net.Listener, error) { return net.Listen("tcp", address(i.httpPort)) })
	if err != nil {
		return err
	}
	i.pages = &http.Server{Handler: site{i.name}.handler(), ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(i.log.Handler(), slog.LevelDebug)}
	i.web = record(pages)                          // a websocket is none of http.Server's any more, and ends with the listener
	i.work.Go(func() { _ = i.pages.Serve(i.web) }) // ends with Close
	tcp, err := bind(func() (net.Listener, error) { return net.Listen("tcp", address(i.sipPort)) })
	if err != nil {
		return err
	}
	i.tcp = record(tcp)
	i.udp, err = bind(func() (*net.UDPConn, error) { return net.ListenUDP("udp", &net.UDPAddr{IP: loopback, Port: i.sipPort}) })
	if err != nil {
		return err
	}
	_ = i.udp.SetReadBuffer(1 << 20) // a smaller one loses datagrams, which are sent again
	return i.serveSIP()
}

// bind tries again while the address is in use.
func bind[T any](open func() (T, error)) (T, error) {
	for until := time.Now().Add(bindWait); ; {
		v, err := open()
		if err == nil || time.Now().After(until) {
			return v, err
		}
		t := time.NewTimer(50 * time.Millisecond)
		<-t.C
	}
}

func (i *incarnation) serveSIP() error {
	var err error
	i.ua, err = sipgo.NewUA(sipgo.WithUserAgent(i.name), sipgo.WithUserAgentHostname(host),
		sipgo.WithUserAgentTransactionLayerOptions(sip.WithTransactionLayerLogger(i.log),
			sip.WithTransactionLayerUnhandledResponseHandler(func(*sip.Response) {})),
		sipgo.WithUserAgentTransportLayerOptions(sip.WithTransportLayerLogger(i.log),
			sip.WithTransportLayerTransports(sip.TransportsConfig{TCP: &sip.TransportTCP{DialerCreate: refuse}})))
	if err != nil {
		return err
	}
	srv, err := sipgo.NewServer(i.ua, sipgo.WithServerLogger(i.log))
	if err != nil {
		return err
	}
	i.client, err = sipgo.NewClient(i.ua, sipgo.WithClientLogger(i.log), sipgo.WithClientAddr(address(i.sipPort)))
	if err != nil {
		return err
	}
	srv.OnInvite(i.invite)
	srv.OnAck(i.ack)
	srv.OnBye(i.bye)
	srv.OnOptions(func(req *sip.Request, tx sip.ServerTransaction) { i.respond(req, tx, 200, "OK") })
	srv.OnNoRoute(func(req *sip.Request, tx sip.ServerTransaction) { i.respond(req, tx, 405, "Method Not Allowed") })
	i.work.Go(func() { _ = srv.ServeUDP(i.udp) }) // both end when their socket is closed
	i.work.Go(func() { _ = srv.ServeTCP(i.tcp) })
	return nil
}

// begin runs what a request started; it is not begun any more when the server has stopped.
func (i *incarnation) begin(f func(ctx context.Context)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.shut {
		i.work.Go(func() { f(i.ctx) })
	}
}

// close closes the sockets and waits. A message that was read before may still be on its way to a handler; it finds
// nothing to answer on.
func (i *incarnation) close() {
	i.mu.Lock()
	i.shut = true
	i.mu.Unlock()
	i.cancel()
	if i.ua != nil {
		i.seal()
	}
	var errs []error
	if i.udp != nil {
		errs = append(errs, i.udp.Close())
	}
	if i.tcp != nil {
		errs = append(errs, i.tcp.Close())
	}
	if i.pages != nil {
		errs = append(errs, i.web.Close(), i.pages.Close())
	}
	if err := errors.Join(errs...); err != nil {
		i.log.Debug("server stopped", slog.String("server", i.name), slog.Any("err", err))
	}
	i.work.Wait()
	if i.ua != nil {
		i.seal() // a reader that had only just begun has put itself into the place, and has gone
		i.ua.TransactionLayer().Close()
	}
}

// seal puts the UDP socket, which is about to be closed, where sipgo looks for one before it opens another: under the
// edge's address for answers and under our own for requests. The entries of the reader end with it; these stay, so the
// transport layer, which would clear them, is not closed: all its sockets are ours.
func (i *incarnation) seal() {
	own := address(i.sipPort)
	dead := &sip.UDPConnection{PacketConn: i.udp, PacketAddr: own, Listener: true}
	for _, a := range []string{i.edge, own} {
		i.ua.TransportLayer().Pool("udp").Add(a, dead)
	}
}
