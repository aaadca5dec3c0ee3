package health

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"

	"github.com/wyegate/wyegate/routing"
)

// exchange makes one probe, whole within its time-out. conn is where a SIP stream is kept until the next one.
func (p *Prober) exchange(ctx context.Context, pr *probe, c *Check, conn *net.Conn) outcome {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	switch {
	case c.Address.Proto == routing.SIP && c.Address.Transport == "udp":
		return p.askUDP(ctx, pr, c)
	case c.Address.Proto == routing.SIP:
		return p.askStream(ctx, pr, c, conn)
	case c.Path == "":
		return p.connect(ctx, c)
	default:
		return p.get(ctx, c)
	}
}

// connect is the HTTP probe without a path.
func (p *Prober) connect(ctx context.Context, c *Check) outcome {
	conn, err := p.cfg.Dial(ctx, c.Address)
	if err != nil {
		return failed(err)
	}
	_ = conn.Close()
	return outcome{result: OK, brief: "connected", text: "connected", from: c.Address.Addr.String()}
}

// failed puts an error of the network into words.
func failed(err error) outcome {
	ne, isNet := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return outcome{result: Fail, refused: true, brief: "refused", text: "connection refused"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, os.ErrDeadlineExceeded), isNet && ne.Timeout():
		return outcome{result: Timeout, brief: "timeout", text: "no answer in time"}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return outcome{result: Fail, brief: "closed", text: "connection closed: " + err.Error()}
	default:
		return outcome{result: Fail, brief: "error", text: err.Error()}
	}
}
