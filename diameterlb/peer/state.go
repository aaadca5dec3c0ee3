package peer

// State is a state of the peer machine (RFC 6733 5.6).
type State uint8

// The states. In IOpen the connection is one we dialled, in ROpen one we accepted.
const (
	Closed State = iota
	WaitConnAck
	WaitICEA
	WaitConnAckElect
	WaitReturns
	ROpen
	IOpen
	Closing
)

// String is the name in RFC 6733.
func (s State) String() string {
	names := [...]string{"Closed", "Wait-Conn-Ack", "Wait-I-CEA", "Wait-Conn-Ack/Elect", "Wait-Returns", "R-Open", "I-Open", "Closing"}
	if int(s) < len(names) {
		return names[s]
	}
	return "unknown"
}

// Event is what moves the machine. I is the connection we dialled, R one we accepted.
type Event uint8

// The events of RFC 6733 5.6.
const (
	Start Event = iota
	Stop
	Timeout
	RConnCER
	IConnected
	IRefused
	ICEA
	INotCEA
	IDisconnect
	RDisconnect
	ElectionWon
	DPR
	DPA
	Disconnect
	Message // any that is no base command, DWR, DWA
)

// Action is what a transition asks for. Several may be set; they are done in the order of the constants.
type Action uint16

// The actions of RFC 6733 5.6.
const (
	Dial Action = 1 << iota
	Accept
	ProcessCER
	SendCER
	ProcessCEA
	Elect
	CloseI
	SendCEA // on R
	CloseR
	Reject // the new R only
	SecondCER
	SendDPR
	SendDPA
	Serve

	lastAction = Serve
)

type transition struct {
	from State
	on   Event
	do   Action
	to   State
}

// table has one row per line of diameter.md 2.2; what is not there is marked. Serving is done by the reader of the
// connection, so that Message never reaches the machine: its rows say that it is allowed in these two states alone.
var table = [...]transition{
	{Closed, Start, Dial, WaitConnAck},
	{Closed, RConnCER, Accept | ProcessCER | SendCEA, ROpen},
	{WaitConnAck, IConnected, SendCER, WaitICEA},
	{WaitConnAck, IRefused, CloseI, Closed},
	{WaitConnAck, Timeout, CloseI, Closed},
	{WaitConnAck, RConnCER, Accept | ProcessCER, WaitConnAckElect},
	{WaitICEA, ICEA, ProcessCEA, IOpen},
	{WaitICEA, RConnCER, Accept | ProcessCER | Elect, WaitReturns},
	{WaitICEA, INotCEA, CloseI, Closed},
	{WaitICEA, IDisconnect, CloseI, Closed},
	{WaitICEA, Timeout, CloseI, Closed},
	{WaitConnAckElect, IConnected, SendCER | Elect, WaitReturns},
	{WaitConnAckElect, IRefused, SendCEA, ROpen},
	{WaitConnAckElect, RDisconnect, CloseR, WaitConnAck},
	{WaitConnAckElect, RConnCER, Reject, WaitConnAckElect},
	{WaitConnAckElect, Timeout, CloseI | CloseR, Closed},
	{WaitReturns, ElectionWon, CloseI | SendCEA, ROpen},
	{WaitReturns, IDisconnect, CloseI | SendCEA, ROpen},
	{WaitReturns, ICEA, ProcessCEA | CloseR, IOpen},
	{WaitReturns, RDisconnect, CloseR, WaitICEA},
	{WaitReturns, RConnCER, Reject, WaitReturns},
	{WaitReturns, Timeout, CloseI | CloseR, Closed},
	{ROpen, Message, Serve, ROpen},
	{ROpen, RConnCER, SecondCER, ROpen},
	{ROpen, Stop, SendDPR, Closing},
	{ROpen, DPR, SendDPA, Closing},
	{ROpen, Disconnect, CloseR, Closed},
	{IOpen, Message, Serve, IOpen},
	{IOpen, RConnCER, SecondCER, IOpen},
	{IOpen, Stop, SendDPR, Closing},
	{IOpen, DPR, SendDPA, Closing},
	{IOpen, Disconnect, CloseI, Closed},
	{Closing, DPR, SendDPA, Closing}, // not in the RFC: both sides leave at once, and each is owed its DPA
	{Closing, DPA, CloseI | CloseR, Closed},
	{Closing, Disconnect, CloseI | CloseR, Closed},
	{Closing, Timeout, CloseI | CloseR, Closed},
}

// Next is the transition from s on e; ok is false for a pair that RFC 6733 does not list, which changes nothing.
func Next(s State, e Event) (do Action, to State, ok bool) {
	for _, t := range table {
		if t.from == s && t.on == e {
			return t.do, t.to, true
		}
	}
	return 0, s, false
}
