package sipproxy

import (
	"github.com/wyegate/wyegate/internal/sip"
	"github.com/wyegate/wyegate/proxy"
)

// view is a request as rules and default keys read it: the same index that the router uses, without the fields that the
// trust filter takes off (SS-3).
type view struct {
	r *request
	t *target
}

// Describe implements proxy.Message.
func (v *view) Describe(q *proxy.RuleRequest) {
	r := v.r
	q.Proto = proxy.RuleSIP
	q.Method = r.text
	q.Target = r.uriText
	q.Remote = fold(r.in.Source)
	trusted := r.trusts(v.t)
	q.Fields = q.Fields[:0]
	for i := range r.m.Fields {
		f := &r.m.Fields[i]
		if !trusted && v.t.guarded(r.m, f) {
			continue
		}
		q.Fields = append(q.Fields, proxy.RuleField{ID: f.ID, Name: r.m.Bytes(f.Name), Value: r.m.Bytes(f.Value)})
	}
}

// AppendPart implements proxy.Message.
func (v *view) AppendPart(dst []byte, p proxy.KeyPart) []byte {
	r := v.r
	from, to := r.id.fromTag, r.id.toTag
	if r.retag {
		from, to = to, from
	}
	switch p {
	case proxy.PartFromTag:
		return append(dst, from...)
	case proxy.PartToTag:
		return append(dst, to...)
	case proxy.PartCallID:
		return append(dst, r.id.callID...)
	case proxy.PartFrom:
		return append(dst, r.m.Values.From.URI...)
	case proxy.PartTo:
		return append(dst, r.m.Values.To.URI...)
	case proxy.PartRequestURI:
		return append(dst, r.uriText...)
	case proxy.PartRemoteHost, proxy.PartClientAddress:
		return fold(r.in.Source).Addr().AppendTo(dst)
	case proxy.PartRemotePort:
		return appendPort(append(dst, ':'), r.in.Source.Port())
	}
	return dst
}

// trustNames are the fields that only a trusted sender may set; a name that ends in '-' stands for all that begin so.
var trustNames = [...]string{"P-Preferred-", "P-Charging-", "P-Asserted-"}

// guarded says whether a field is one that strangers must not set: a trust field, or one in which we tell servers key
// and token.
func (t *target) guarded(m *sip.Msg, f *sip.Field) bool {
	switch f.ID {
	case sip.PAssertedIdentity, sip.PPreferredIdentity:
		return true
	case sip.HeaderOther:
	default:
		return false
	}
	name := m.Bytes(f.Name)
	if len(name) > 2 && (name[0] == 'P' || name[0] == 'p') && name[1] == '-' {
		for _, p := range trustNames {
			if len(name) >= len(p) && sip.EqualFold(name[:len(p)], p) {
				return true
			}
		}
	}
	return t.told(name)
}

// told says whether a field is one of tell_server.
func (t *target) told(name []byte) bool {
	return t.Target.TellKey != "" && sip.EqualFold(name, t.Target.TellKey) ||
		t.Target.TellToken != "" && sip.EqualFold(name, t.Target.TellToken)
}
