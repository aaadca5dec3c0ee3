package h1

import (
	"github.com/wyegate/wyegate/internal/http1"
	"github.com/wyegate/wyegate/internal/obs"
	"github.com/wyegate/wyegate/proxy/httpproxy"
)

// exchange is the memory of one request and its response. A connection takes one from the free list when a request
// comes, and gives it back when it has nothing more to do.
type exchange struct {
	in   []byte // received from the client; the head of the request first
	out  []byte // what is written next
	all  []byte // headroom and resp: the head we write goes right before the body that came
	resp []byte // received from the server
	fill int    // octets of in
	head int    // octets of the request head
	pos  int    // first octet of in that was not taken yet
	have int    // octets of resp

	req, answer          http1.Head
	trailer, backTrailer http1.Head // of the request, of the response
	headLimits           http1.Limits
	view                 httpproxy.View
	dec                  httpproxy.Decider
	choice               httpproxy.Choice
	rec                  obs.Record
	chunks, down         http1.Chunks // of the request, of the response

	start, first, connect int64 // time of the Front: begin, first octet of the answer, spent connecting
	bytesIn, bytesOut     int64
	code                  int  // of the final response; 0: none yet
	begun                 bool // octets of the final response are out
	keep                  bool // the client's side may be used again
	framed                bool // the response goes out in chunks
	unread                bool // the client may be sending what nobody will read
	continued             bool // a 100 went to the client
	interim               int  // 1xx responses so far
	same                  bool // one more try on a new connection to the same server was spent
	end, phase            byte // letters 1 and 2 of the disposition
	light                 bool // in is small, and out, all and resp are a loop's or those of back
	back                  *backing

	up uploader
	sp splicer
}

const (
	bodyRoom   = 8 << 10 // octets of in behind the longest head
	fieldsRoom = 4 << 10 // octets of out for what we add
	respSize   = 24 << 10
	headRoom   = 1 << 10 // in front of resp
)

// backing is what an exchange writes from and receives responses into.
type backing struct{ out, all []byte }

func (f *Front) newBacking(want, resp int) *backing {
	return &backing{out: make([]byte, 0, want+fieldsRoom), all: make([]byte, headRoom+max(respSize, want, resp))}
}

// giveBack takes an exchange that is needed no more.
func (f *Front) giveBack(x *exchange) {
	if !x.light {
		f.exchanges.put(x)
		return
	}
	f.unback(x)
	f.light.put(x)
}

// unback takes what a light exchange had to itself.
func (f *Front) unback(x *exchange) {
	if x.back != nil {
		f.backing.put(x.back)
		x.back, x.out, x.all, x.resp = nil, nil, nil, nil
	}
}

// exchange gives memory for one request, from the free list or new.
func (f *Front) exchange(c *conn) *exchange {
	want := c.gen.Limits.MaxHeader + bodyRoom
	if x := f.exchanges.get(); x != nil && len(x.in) >= want {
		x.fill = 0
		return x
	}
	x := newExchange(want)
	b := f.newBacking(want, 0)
	x.out, x.all, x.resp = b.out, b.all, b.all[headRoom:]
	return x
}

// newExchange makes one without memory for responses.
func newExchange(size int) *exchange {
	x := &exchange{in: make([]byte, size)}
	x.req.Fields = make([]http1.Field, 0, 32)
	x.answer.Fields = make([]http1.Field, 0, 32)
	x.view.Head = &x.req
	x.up.init(x)
	x.sp.init()
	return x
}

// begin makes the exchange ready for a request of c.
func (x *exchange) begin(c *conn) {
	lim := &c.gen.Limits
	x.headLimits = http1.Limits{Target: lim.MaxTarget, Block: lim.MaxHeader, Fields: lim.MaxFields}
	x.view.Reset()
	x.view.Remote, x.view.Local, x.view.TLS, x.view.SNI = c.remote, c.local, c.l.TLS, c.sni
	x.view.ClientCert = c.cert
	x.view.HTTP2 = c.http2
	x.choice = httpproxy.Choice{Rule: -1}
	x.start, x.first, x.connect = c.now(), 0, 0
	x.head, x.pos, x.have = 0, 0, 0
	x.bytesIn, x.bytesOut, x.code, x.interim = 0, 0, 0, 0
	x.framed = false
	x.begun, x.keep, x.unread, x.continued, x.same = false, false, false, false, false
	x.end, x.phase = '-', '-'
	x.up.begin()
}
