package settings

import (
	"cmp"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// neighbour is the environment of gpu-container-exporter, which kpulse-proxy can replace without
// other changes. It returns a variable by name.
type neighbour func(name string) (value string, ok bool)

// adoption is a flag that the neighbour's environment sets if our settings do not.
type adoption struct {
	flag string
	// by is the variable that this requires.
	by string
	// unless are other flags for the same purpose: a given one wins, and so does a config file
	// for which inFile, if not nil, returns true.
	unless string
	inFile func(*File) bool
	// value returns the value for the flag, or "".
	value func(neighbour) (string, error)
	// complete, unless nil, sets related options that have no flag.
	complete func(neighbour, *Options)
	// help is for the reference.
	help string
}

// adoptions are in the order in which they are reported.
var adoptions = []adoption{
	{flag: "source", by: "DCGM_HOST", unless: "backend replay kube.discover", inFile: namesSources, value: neighbour.url,
		help: "The host of the exporter, with `DCGM_PORT` (9400) and `DCGM_METRICS_ENDPOINT` (/metrics)."},
	{flag: "kube.discover", by: "DCGM_LABELS", unless: "backend replay source", inFile: namesSources, value: neighbour.selector, complete: neighbour.completeDiscovery,
		help: "The label selector of the exporters' pods, with `DCGM_PORT` (the port of their container) and `DCGM_METRICS_ENDPOINT` (/metrics); only without `DCGM_HOST`."},
	{flag: "web.listen-address", by: "HTTP_LISTEN_PORT", value: neighbour.listen,
		help: "The port to listen on, on all addresses. Without it the proxy listens on its own default port, not on 6061."},
}

// enginePort is the port of DCGM's host engine: with it, DCGM_HOST and DCGM_PORT are meant for a
// client of the engine.
const enginePort = "5555"

// TheirVariables are the neighbour's own.
var TheirVariables = []string{"DCGM_HOST", "DCGM_PORT", "DCGM_METRICS_ENDPOINT", "DCGM_LABELS", "HTTP_LISTEN_PORT"}

// get returns the value of a variable, or "". It ignores what Kubernetes sets for a Service of that
// name (DCGM_PORT=tcp://10.0.0.1:9400).
func (env neighbour) get(name string) string {
	value, _ := env(name)
	if strings.Contains(value, "://") && strings.HasSuffix(name, "_PORT") {
		return ""
	}
	return value
}

// set returns which of the neighbour's own variables are set. NODE_NAME is also ours, so it does
// not count.
func (env neighbour) set() (names []string) {
	for _, name := range TheirVariables {
		if value := env.get(name); value != "" && (name != "DCGM_PORT" || value != enginePort) {
			names = append(names, name)
		}
	}
	return names
}

// speaks reports whether the environment is the neighbour's: it has a variable for what to read
// and another one. A single variable may be meant for another program.
func (env neighbour) speaks() bool {
	return (env.get("DCGM_HOST") != "" || env.get("DCGM_LABELS") != "") && len(env.set()) > 1
}

// url returns the exporter's URL, if the environment names its host.
func (env neighbour) url() (string, error) {
	host := env.get("DCGM_HOST")
	if host == "" {
		return "", nil
	}
	if bare := strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"); net.ParseIP(bare) != nil {
		host = bare
	} else if strings.ContainsAny(host, ":/?#@[] ") {
		// Not quoted: it may hold a password.
		return "", fmt.Errorf("$DCGM_HOST is not a host; write a name or an address in it, the port in DCGM_PORT and the path in DCGM_METRICS_ENDPOINT, or give --source=URL")
	}
	port, err := env.port("DCGM_PORT", "9400", 1)
	if err != nil {
		return "", err
	}
	return "http://" + net.JoinHostPort(host, port) + cmp.Or(env.path(), "/metrics"), nil
}

// path returns the path of the exporters' URLs, or "" if the environment does not name it.
func (env neighbour) path() string {
	path := env.get("DCGM_METRICS_ENDPOINT")
	if path == "" {
		return ""
	}
	return "/" + strings.TrimPrefix(path, "/")
}

// selector returns the selector of the exporters' pods, if the environment names no host.
func (env neighbour) selector() (string, error) {
	if env.get("DCGM_HOST") != "" {
		return "", nil
	}
	_, err := env.port("DCGM_PORT", "", 1)
	return env.get("DCGM_LABELS"), err
}

// completeDiscovery sets how to read the discovered pods, unless the config file does.
func (env neighbour) completeDiscovery(o *Options) {
	d, standard := &o.Kube.Discover, Default().Kube.Discover
	if d.Port == standard.Port {
		d.Port = cmp.Or(env.get("DCGM_PORT"), d.Port)
	}
	if d.Path == standard.Path {
		d.Path = cmp.Or(env.path(), d.Path)
	}
}

// namesSources reports whether a config file names what to read.
func namesSources(file *File) bool {
	return len(file.Sources) > 0 || file.Kube.Discover.Selector != ""
}

// listen returns the address to listen on.
func (env neighbour) listen() (string, error) {
	port, err := env.port("HTTP_LISTEN_PORT", "", 0)
	if port == "" {
		return "", err
	}
	return ":" + port, err
}

// port returns the port in a variable.
func (env neighbour) port(name, standard string, least int) (string, error) {
	text := cmp.Or(env.get(name), standard)
	if text == "" {
		return "", nil
	}
	if n, err := strconv.ParseUint(text, 10, 16); err != nil || int(n) < least {
		return "", fmt.Errorf("$%s=%.20q is not a port; write a number from %d to 65535", name, text, least)
	}
	return text, nil
}

// adopt sets flags from the neighbour's environment, unless our own settings do.
func (g Given) adopt(env neighbour) error {
	if !env.speaks() {
		return nil
	}
	for _, a := range adoptions {
		if a.waived(g) {
			continue
		}
		value, err := a.value(env)
		if err != nil {
			return err
		}
		if f := g.Flag(a.flag); value != "" {
			f.Texts, f.Adopted = []string{value}, a.by
		}
	}
	return nil
}

// Under returns g without the adopted values that a config file replaces.
func (g Given) Under(file *File) Given {
	g = slices.Clone(g)
	for _, a := range adoptions {
		i := slices.IndexFunc(g, func(f *givenFlag) bool { return f.Setting.Flag == a.flag })
		if g[i].Adopted != "" && a.inFile != nil && a.inFile(file) {
			g[i] = &givenFlag{Setting: g[i].Setting}
		}
	}
	return g
}

// complete sets the options without a flag that go with adopted flags.
func (g Given) complete(env neighbour, o *Options) {
	for _, a := range adoptions {
		if a.complete != nil && g.Flag(a.flag).Adopted != "" {
			a.complete(env, o)
		}
	}
}

// waived reports whether our own flags or variables replace a.
func (a *adoption) waived(g Given) bool {
	return slices.ContainsFunc(append(strings.Fields(a.unless), a.flag), func(flag string) bool { return g.Flag(flag).Texts != nil })
}

// LogAdopted logs which of the neighbour's variables are used, and which are not.
func (o *Options) LogAdopted(env neighbour, log func(msg string, args ...any)) {
	for _, a := range adoptions {
		switch f := o.Given.Flag(a.flag); {
		case f.Adopted != "":
			log("set as in gpu-container-exporter", "variable", f.Name(), "flag", "--"+a.flag, "value", f.String())
		case env.get(a.by) != "" && !env.speaks() && !a.waived(o.Given):
			log("a variable of gpu-container-exporter is not followed: alone it may be meant for another program", "variable", "$"+a.by,
				"remedy", "set DCGM_HOST or DCGM_LABELS and one more of its variables, or --"+a.flag)
		}
	}
}
