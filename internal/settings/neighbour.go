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
	// unless are other flags for the same purpose: a given one wins.
	unless string
	// ofSources means that a config file that names what to read wins.
	ofSources bool
	// help is for the reference.
	help string
}

// adoptions are in the order in which they are reported.
var adoptions = []adoption{
	{flag: "source", by: "DCGM_HOST", unless: "backend replay kube.discover", ofSources: true,
		help: "The host of the exporter, with `DCGM_PORT` (9400) and `DCGM_METRICS_ENDPOINT` (/metrics)."},
	{flag: "kube.discover", by: "DCGM_LABELS", unless: "backend replay source", ofSources: true,
		help: "The label selector of the exporters' pods, with `DCGM_PORT` (the port of their container) and `DCGM_METRICS_ENDPOINT` (/metrics); only without `DCGM_HOST`."},
	{flag: "web.listen-address", by: "HTTP_LISTEN_PORT",
		help: "The port to listen on, on all addresses. Without it the proxy listens on its own default port, not on 6061."},
}

// enginePort is the port of DCGM's host engine: with it, DCGM_HOST and DCGM_PORT are meant for a
// client of the engine.
const enginePort = "5555"

// get returns the value of a variable, or "". It ignores what Kubernetes sets for a Service of that
// name (DCGM_PORT=tcp://10.0.0.1:9400).
func (env neighbour) get(name string) string {
	value, _ := env(name)
	if strings.Contains(value, "://") && strings.HasSuffix(name, "_PORT") {
		return ""
	}
	return value
}

// speaks reports whether the environment is the neighbour's: it has a variable for what to read
// and another one. A single variable may be meant for another program.
func (env neighbour) speaks() bool {
	set := 0
	for _, name := range []string{"DCGM_HOST", "DCGM_PORT", "DCGM_METRICS_ENDPOINT", "DCGM_LABELS", "HTTP_LISTEN_PORT"} {
		if value := env.get(name); value != "" && (name != "DCGM_PORT" || value != enginePort) {
			set++
		}
	}
	return (env.get("DCGM_HOST") != "" || env.get("DCGM_LABELS") != "") && set > 1
}

// value returns the value for a flag, or "".
func (env neighbour) value(flag string) (string, error) {
	host := env.get("DCGM_HOST")
	switch {
	case flag == "web.listen-address":
		port, err := env.port("HTTP_LISTEN_PORT", "", 0)
		if port == "" {
			return "", err
		}
		return ":" + port, err
	case flag == "kube.discover" && host == "":
		_, err := env.port("DCGM_PORT", "", 1)
		return env.get("DCGM_LABELS"), err
	case flag != "source" || host == "":
		return "", nil
	}
	if bare := strings.Trim(host, "[]"); net.ParseIP(bare) != nil {
		host = bare
	} else if strings.ContainsAny(host, ":/?#@[] ") { // not quoted: it may hold a password
		return "", fmt.Errorf("$DCGM_HOST is not a host; write a name or an address in it, the port in DCGM_PORT and the path in DCGM_METRICS_ENDPOINT, or give --source=URL")
	}
	port, err := env.port("DCGM_PORT", "9400", 1)
	return "http://" + net.JoinHostPort(host, port) + cmp.Or(env.path(), "/metrics"), err
}

// path returns the path of the exporters' URLs, or "" if the environment does not name it.
func (env neighbour) path() string {
	if path := env.get("DCGM_METRICS_ENDPOINT"); path != "" {
		return "/" + strings.TrimPrefix(path, "/")
	}
	return ""
}

// port returns the port in a variable.
func (env neighbour) port(name, standard string, least int) (string, error) {
	text := cmp.Or(env.get(name), standard)
	if n, err := strconv.ParseUint(text, 10, 16); text != "" && (err != nil || int(n) < least) {
		return "", fmt.Errorf("$%s=%.20q is not a port; write a number from %d to 65535", name, text, least)
	}
	return text, nil
}

// adopt sets flags from the neighbour's environment, unless our own settings do.
func (g Given) adopt(env neighbour) error {
	for _, a := range adoptions {
		if !env.speaks() || a.waived(g) {
			continue
		}
		value, err := env.value(a.flag)
		if err != nil {
			return err
		}
		if f := g.Flag(a.flag); value != "" {
			f.Texts, f.Adopted = []string{value}, a.by
		}
	}
	return nil
}

// under returns g without the adopted values that a config file replaces.
func (g Given) under(file *File) Given {
	if len(file.Sources) == 0 && file.Kube.Discover.Selector == "" {
		return g
	}
	g = slices.Clone(g)
	for _, a := range adoptions {
		if i := slices.IndexFunc(g, func(f *givenFlag) bool { return f.Setting.Flag == a.flag }); g[i].Adopted != "" && a.ofSources {
			g[i] = &givenFlag{Setting: g[i].Setting}
		}
	}
	return g
}

// complete sets how to read discovered pods, unless the config file does.
func (g Given) complete(env neighbour, o *Options) {
	d, standard := &o.Kube.Discover, Default().Kube.Discover
	if g.Flag("kube.discover").Adopted == "" {
		return
	}
	if d.Port == standard.Port {
		d.Port = cmp.Or(env.get("DCGM_PORT"), d.Port)
	}
	if d.Path == standard.Path {
		d.Path = cmp.Or(env.path(), d.Path)
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
