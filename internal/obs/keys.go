package obs

// Attribute keys of the structured log: one word for one thing, whoever logs it.
const (
	KeyErr         = "err"
	KeyFile        = "file"
	KeyGeneration  = "generation"
	KeyNode        = "node"
	KeyListener    = "listener"
	KeyService     = "service"
	KeyApplication = "application"
	KeyPool        = "pool"
	KeyServer      = "server"
	KeySite        = "site"
	KeyState       = "state"
	KeyCause       = "cause"
	KeyProtocol    = "protocol"
	KeyTransport   = "transport"
	KeyClient      = "client"
	KeyMethod      = "method"
	KeyCallID      = "call_id"
	KeyCode        = "code"
	KeyBy          = "by"
	KeyNote        = "note"
	KeyEvent       = "event"
	KeySeverity    = "severity"
)
