package app

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
	"github.com/kpulse/kpulse-proxy/internal/host"
)

// trust decides whose answers check health believes when it runs as root: a node is drained or resumed
// by them, and while the proxy is down any user of the machine can listen on its port.
type trust struct {
	uids   []string // of users that are believed
	cancel context.CancelFunc

	mu        sync.Mutex
	refusal   string // why an answer is not believed, "" if none was refused
	unchecked string // the address of an answer from another network namespace, "" for none
}

// stateDirectory is that of the packages' unit.
const stateDirectory = "/var/lib/kpulse-proxy"

// trusting returns a context with which requests to a loopback address fail if it is neither root nor
// the owner of the state directory, nor one of --trusted-uid, who would answer. Unless we are root,
// every answer is believed.
func (o *options) trusting(ctx context.Context) (context.Context, *trust) {
	t := &trust{}
	if os.Geteuid() != 0 {
		return ctx, t
	}
	t.uids = append([]string{"0"}, o.TrustedUIDs...)
	folder := stateDirectory
	if file := o.stateFile(); file != "" {
		folder = filepath.Dir(file)
	}
	if info, err := os.Stat(folder); err == nil {
		t.uids = append(t.uids, strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10))
	}
	ctx, t.cancel = context.WithCancel(ctx)
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: t.gotConn}), t
}

// isRoot reports whether root of this machine sent a request, over loopback and without a program between.
func isRoot(r *http.Request) bool {
	for _, header := range []string{"Forwarded", "Origin", "Via", "X-Forwarded-For", "X-Real-Ip"} {
		if r.Header.Get(header) != "" {
			return false
		}
	}
	our, is := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !is || !canonical.NamesLoopback(r.RemoteAddr) {
		return false
	}
	uid, here, err := host.PeerOwner(procfs, our.String(), r.RemoteAddr)
	return err == nil && here && uid == 0
}

// gotConn looks at a connection before anything is sent over it.
func (t *trust) gotConn(info httptrace.GotConnInfo) {
	address := info.Conn.RemoteAddr().String()
	if !canonical.NamesLoopback(address) {
		return
	}
	uid, here, err := host.PeerOwner(procfs, info.Conn.LocalAddr().String(), address)
	t.mu.Lock()
	defer t.mu.Unlock()
	switch owner := strconv.FormatUint(uid, 10); {
	case err != nil:
		t.refusal = fmt.Sprintf("who answers at %s cannot be found (%v): its answer is not believed; ask again", address, err)
	case !here:
		t.unchecked = address
		return
	case slices.Contains(t.uids, owner):
		return
	default:
		t.refusal = fmt.Sprintf("the program that listens at %s runs as user id %s, which is neither root nor the proxy's: its answer is not believed; "+
			"stop it, or, if it is the proxy or in front of it, give --trusted-uid=%s", address, owner, owner)
	}
	t.cancel()
}
