package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/emiago/sipgo/sip"
)

// Field names by which a phone asks a server for something; the edge passes them on untouched.
const (
	fieldServer = "X-Server" // in every answer: who made it
	fieldHangUp = "X-Hang-Up"
	fieldDial   = "X-Dial" // URI of a guest that the room is to call
)

// leg is one dialog of a server.
type leg struct {
	invite *sip.Request
	local  sip.Header // To of the answer as From of what we send, or From of our INVITE
	remote sip.Header
	target sip.Uri
	routes []string
	cseq   uint32
	dest   string // where the edge is: the socket, or the connection that the edge opened
	ends   *leg   // is hung up when this one ends
	acked  bool
}

var errNoTag = errors.New("answer without a tag")

func (i *incarnation) respond(req *sip.Request, tx sip.ServerTransaction, code int, reason string) {
	res := sip.NewResponseFromRequest(req, code, reason, nil)
	res.AppendHeader(sip.NewHeader(fieldServer, i.name))
	_ = tx.Respond(res) // who waits for it asks again
}

// contact names the server as the edge reaches it.
func (i *incarnation) contact() string {
	if i.transport == "tcp" {
		return fmt.Sprintf("<sip:%s@%s;transport=tcp>", i.name, address(i.sipPort))
	}
	return fmt.Sprintf("<sip:%s@%s>", i.name, address(i.sipPort))
}

// invite takes every call.
func (i *incarnation) invite(req *sip.Request, tx sip.ServerTransaction) {
	if req.Contact() == nil || req.From() == nil || req.CallID() == nil {
		i.respond(req, tx, 400, "Bad Request")
		return
	}
	res := sip.NewResponseFromRequest(req, 200, "OK", nil)
	res.AppendHeader(sip.NewHeader(fieldServer, i.name))
	res.AppendHeader(sip.NewHeader("Contact", i.contact()))
	local, remote := res.To().AsFrom(), req.From().AsTo()
	l := &leg{invite: req, local: &local, remote: &remote, target: req.Contact().Address, dest: req.Source()}
	for _, h := range req.GetHeaders("Record-Route") {
		l.routes = append(l.routes, splitList(h.Value())...)
	}
	i.keep(req, l)
	_ = tx.Respond(res) // who waits for it asks again
}

func (i *incarnation) keep(req *sip.Request, l *leg) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.legs[req.CallID().Value()] = l
}

// ack does what the caller asked for when the call stands.
func (i *incarnation) ack(req *sip.Request, _ sip.ServerTransaction) {
	if req.CallID() == nil {
		return
	}
	i.mu.Lock()
	l := i.legs[req.CallID().Value()]
	first := l != nil && !l.acked
	if first {
		l.acked = true
	}
	i.mu.Unlock()
	switch {
	case !first:
	case l.invite.GetHeader(fieldHangUp) != nil:
		i.begin(func(ctx context.Context) { i.hangUp(ctx, l) })
	case l.invite.GetHeader(fieldDial) != nil:
		i.begin(func(ctx context.Context) {
			if err := i.dial(ctx, l, l.invite.GetHeader(fieldDial).Value()); err != nil {
				i.hangUp(ctx, l)
			}
		})
	}
}

// bye ends a call that this server has; another server's call is none of ours.
func (i *incarnation) bye(req *sip.Request, tx sip.ServerTransaction) {
	var l *leg
	if id := req.CallID(); id != nil {
		i.mu.Lock()
		l = i.legs[id.Value()]
		delete(i.legs, id.Value())
		i.mu.Unlock()
	}
	if l == nil {
		i.respond(req, tx, 481, "Call/Transaction Does Not Exist")
		return
	}
	i.respond(req, tx, 200, "OK")
	if l.ends != nil {
		i.begin(func(ctx context.Context) { i.hangUp(ctx, l.ends) })
	}
}

// hangUp sends the BYE of the called side.
func (i *incarnation) hangUp(ctx context.Context, l *leg) {
	i.mu.Lock()
	delete(i.legs, l.invite.CallID().Value())
	i.mu.Unlock()
	l.cseq++
	_, _ = i.client.Do(ctx, i.request(l, sip.BYE, l.cseq)) // the phone says whether it came
}

// request writes a request of a dialog (RFC 3261 12.2.1.1), sent to where the call came from: over a stream only the
// connection that the edge opened is known to be a server's.
func (i *incarnation) request(l *leg, method sip.RequestMethod, cseq uint32) *sip.Request {
	req := sip.NewRequest(method, l.target)
	for _, r := range l.routes {
		req.AppendHeader(sip.NewHeader("Route", r))
	}
	req.AppendHeader(sip.HeaderClone(l.local))
	req.AppendHeader(sip.HeaderClone(l.remote))
	req.AppendHeader(sip.HeaderClone(l.invite.CallID()))
	req.AppendHeader(&sip.CSeqHeader{SeqNo: cseq, MethodName: method})
	i.aim(req, l)
	return req
}

func (i *incarnation) aim(req *sip.Request, l *leg) {
	req.AppendHeader(sip.NewHeader("Contact", i.contact()))
	req.AppendHeader(sip.NewHeader(fieldServer, i.name))
	req.SetTransport(strings.ToUpper(l.invite.Transport()))
	req.SetDestination(l.dest)
	if !sip.IsReliable(req.Transport()) {
		var a sip.Addr
		a.IP, a.Port = loopback, i.sipPort
		req.Laddr = a // out of the socket on which we are known
	}
	req.SetBody(nil)
}

// dial calls a guest on behalf of a room; when the guest hangs up, the room's caller is hung up as well.
func (i *incarnation) dial(ctx context.Context, from *leg, uri string) error {
	var to sip.Uri
	if err := sip.ParseUri(uri, &to); err != nil {
		return err
	}
	req := sip.NewRequest(sip.INVITE, to)
	route := "<sip:" + i.edge + ";lr>"
	if sip.IsReliable(from.invite.Transport()) {
		route = "<sip:" + i.edge + ";transport=tcp;lr>"
	}
	req.AppendHeader(sip.NewHeader("Route", route))
	local := sip.FromHeader{Address: from.invite.Recipient}
	local.Params.Add("tag", sip.GenerateTagN(16))
	req.AppendHeader(&local)
	id := sip.CallIDHeader(sip.GenerateTagN(24))
	req.AppendHeader(&id)
	out := &leg{invite: req, local: &local, dest: from.dest, ends: from, cseq: 1}
	req.AppendHeader(&sip.CSeqHeader{SeqNo: 1, MethodName: sip.INVITE})
	req.SetTransport(from.invite.Transport())
	i.aim(req, out)
	i.keep(req, out)
	res, err := i.client.Do(ctx, req)
	if err == nil && !res.IsSuccess() {
		err = fmt.Errorf("guest: %d %s", res.StatusCode, res.Reason)
	}
	if err == nil && (res.To() == nil || res.Contact() == nil) {
		err = errNoTag
	}
	if err != nil {
		i.mu.Lock()
		delete(i.legs, id.Value())
		i.mu.Unlock()
		return err
	}
	for _, h := range res.GetHeaders("Record-Route") {
		out.routes = append(out.routes, splitList(h.Value())...)
	}
	slices.Reverse(out.routes) // RFC 3261 12.1.2
	out.remote, out.target = sip.HeaderClone(res.To()), res.Contact().Address
	return i.client.WriteRequest(i.request(out, sip.ACK, 1))
}
