package archtest

// allowed is the import table: what each package may import from this module. internal/obs is left out: every package
// that is not pure may import it. A package that is added gets its line here in the same change.
var allowed = map[string][]string{
	"routing":            {},
	"internal/sip":       {},
	"internal/http1":     {},
	"internal/diam":      {},
	"internal/diam/base": {"internal/diam"},
	"diameterlb/peer":    {"internal/diam", "internal/diam/base", "internal/limit"},

	"diameterlb/policycluster": {"internal/resolver"},
	"diameterlb/site":          {"diameterlb/policycluster"},
	"diameterlb/policypeer":    {"diameterlb/peer", "diameterlb/policycluster", "internal/diam", "internal/diam/base"},

	"internal/obs":       {},
	"internal/limit":     {},
	"internal/certs":     {},
	"internal/resolver":  {},
	"internal/statedir":  {},
	"config":             {"routing"},
	"dcr":                {"internal/sip"},
	"dcr/schema":         {},
	"internal/listen":    {"internal/limit"},
	"internal/websocket": {"internal/http1"},
	"internal/sip/transport": {
		"internal/sip", "internal/listen", "internal/limit", "internal/http1", "internal/websocket",
	},
	"internal/health":    {"routing"},
	"proxy":              {"dcr", "routing"},
	"proxy/sipproxy":     {"proxy", "routing", "internal/sip", "internal/sip/transport"},
	"proxy/httpproxy":    {"proxy", "routing", "internal/http1", "internal/limit", "internal/websocket"},
	"proxy/httpproxy/h1": {"proxy/httpproxy", "internal/http1"},
	"proxy/httpproxy/h2": {"proxy/httpproxy", "internal/http1"},
	"admin":              {"config", "dcr", "routing", "proxy"},
	"internal/engine":    {"*"},
	"internal/demo":      {"config", "internal/engine", "admin"},
	"cmd/wyegate":        {"config", "dcr", "routing", "admin", "internal/engine", "internal/demo", "internal/health"},
	"internal/lbtest":    {"internal/sip"},
	"internal/archtest":  {},

	"internal/bench":         {"internal/bench/sipload"},
	"internal/bench/load":    {},
	"internal/bench/sipload": {"internal/bench/load"},

	"docs":     {"*"}, // tests only: its examples are executed
	"testdata": {},
}

// never names what the engine may not import although it may import everything else.
var never = map[string][]string{
	"internal/engine": {"cmd/wyegate", "internal/demo", "internal/lbtest", "internal/archtest", "internal/bench"},
}

// pure packages compute: no sockets, no files, no log.
var pure = []string{"routing", "dcr", "config", "internal/sip", "internal/http1", "internal/websocket", "internal/diam", "internal/diam/base"}

// impure is what a pure package does not import, prefix for prefix.
var impure = []string{"net", "os", "log", "net/http", "syscall", "golang.org/x/sys"}

// homes gives each dependency the packages that may import it outside of tests.
var homes = map[string][]string{
	"github.com/beevik/etree":             {"dcr"},
	"github.com/dlclark/regexp2":          {"dcr"},
	"github.com/buraksezer/consistent":    {"routing"},
	"github.com/valyala/fasthttp":         {"proxy/httpproxy/h1", "internal/health", "internal/demo"},
	"github.com/emiago/sipgo":             {"internal/health", "internal/demo"},
	"github.com/miekg/dns":                {"internal/resolver", "internal/demo"},
	"go.yaml.in/yaml":                     {"config"},
	"github.com/alecthomas/kong":          {"cmd/wyegate"},
	"github.com/fiorix/go-diameter":       {"internal/diam/base"},
	"github.com/prometheus/client_golang": {"internal/obs", "internal/engine"},
	"github.com/fsnotify/fsnotify":        {"internal/engine", "internal/certs"},
	"github.com/gobwas/ws":                {"internal/websocket", "internal/demo", "internal/lbtest"},
	"golang.org/x/net":                    {"proxy/httpproxy/h2"},
	"net/http":                            {"proxy/httpproxy/h2", "admin", "internal/health", "internal/demo", "cmd/wyegate", "internal/engine"},
}

// testOnly packages are imported by _test.go files alone.
var testOnly = []string{"internal/lbtest", "internal/netlab", "internal/archtest"}
