package holders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/kpulse/kpulse-proxy/internal/canonical"
)

const (
	// pageSize is how many pods are requested at once.
	pageSize = 500
	// watchTime is the shortest duration of a watch. The longest is twice that, so that not
	// all watches restart at once.
	watchTime = 5 * time.Minute
	// watchGrace is how much longer we wait for its end.
	watchGrace = 30 * time.Second
	// leastWatch is the shortest duration after which a watch may end without a cause; one
	// that ends sooner counts as failed.
	leastWatch = time.Second
	// oftenCut is how many watches in a row must be cut at once to count as a problem.
	oftenCut = 3
	// maxPage bounds one answer, or one change in a watch, in bytes; a pod has about 20 KB.
	maxPage = 64 << 20
	// maxPages bounds a list. No cluster has so many pods.
	maxPages = 1000
)

// errGone means that the API server has forgotten the known state: the pods must be listed again.
var errGone = errors.New("the known state of the pods is too old to continue from")

// errCut means that a watch ended early. The next request shows whether anything is wrong,
// unless it is cut at once too.
var errCut = errors.New("the watch of the pods was cut")

// errSlow means that a list, or the beginning of a watch, took too long.
var errSlow = canonical.TimedOut(RequestTimeout)

// statusError is an answer with a status other than 200.
type statusError struct {
	code    int
	message string
}

func (e *statusError) Error() string { return e.message }

// watcher follows the pods of one selector.
type watcher struct {
	client   *Client
	selector string
	base     *url.URL // of the pods
	node     string   // "" for all
	version  string   // of the known state, "" if the pods must be listed
	maxPage  int64
	// cuts counts the latest watches that were cut at once, in a row.
	cuts atomic.Int32

	// replace and change are called with all pods of the selector, and with one of them.
	replace func([]podObject)
	change  func(p *podObject, deleted bool)
	// answered is called when the API server has answered as it should.
	answered func()
}

// newWatcher returns a watcher of the pods of a selector in a namespace, "" for all.
func newWatcher(c *Client, selector, namespace, node string) (*watcher, error) {
	base, _, err := rest.DefaultServerUrlFor(c.Config)
	if err != nil {
		return nil, fmt.Errorf("the address of the Kubernetes API server cannot be used: %w; correct the kubeconfig", err)
	}
	if namespace == "" {
		base = base.JoinPath("api", "v1", "pods")
	} else {
		base = base.JoinPath("api", "v1", "namespaces", namespace, "pods")
	}
	return &watcher{client: c, selector: selector, base: base, node: node, maxPage: maxPage}, nil
}

// follow lists the pods, unless it can continue from the known ones, and watches them until that
// ends. A nil error is an expected end.
func (w *watcher) follow(ctx context.Context) error {
	if w.version == "" {
		if err := w.list(ctx); err != nil {
			return err
		}
	}
	err := w.watch(ctx)
	if errors.Is(err, errGone) || errors.Is(err, errCut) && w.isCutOften() { // only lists show changes
		w.version = ""
	}
	return err
}

// isCutOften reports whether watches begin, but are cut at once.
func (w *watcher) isCutOften() bool { return w.cuts.Load() >= oftenCut }

// goesOn notes that a watch was not cut at once.
func (w *watcher) goesOn() {
	w.cuts.Store(0)
	w.answered()
}

// list reads all pods, page by page.
func (w *watcher) list(ctx context.Context) error {
	var pods []podObject
	next := ""
	for pages := 1; ; pages++ {
		query := url.Values{"limit": {strconv.Itoa(pageSize)}}
		if next != "" {
			query.Set("continue", next)
		}
		var page struct {
			Metadata struct{ ResourceVersion, Continue string }
			Items    []podObject
		}
		if err := w.page(ctx, query, &page); err != nil {
			return err
		}
		pods = append(pods, page.Items...)
		if next = page.Metadata.Continue; next == "" {
			w.version = page.Metadata.ResourceVersion
			break
		}
		if pages == maxPages {
			return fmt.Errorf("its list of pods does not end within %d pages", pages)
		}
	}
	w.replace(pods)
	if !w.isCutOften() {
		w.answered()
	}
	return nil
}

func (w *watcher) page(ctx context.Context, query url.Values, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, RequestTimeout, errSlow)
	defer cancel()
	body, err := w.get(ctx, query)
	if err != nil {
		return err
	}
	defer body.Close()
	return json.NewDecoder(io.LimitReader(body, w.maxPage)).Decode(into)
}

// event is an element of a watch.
type event struct {
	Type   string
	Object json.RawMessage
}

// watch reads changes until the watch ends.
func (w *watcher) watch(ctx context.Context) error {
	lasts := watchTime + rand.N(watchTime) //nolint:gosec // spreads load
	query := url.Values{
		"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {w.version},
		"timeoutSeconds": {strconv.Itoa(int(lasts.Seconds()))},
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Until it begins to answer, a watch is a request like any other.
	end := time.AfterFunc(RequestTimeout, func() { cancel(errSlow) })
	defer end.Stop()
	body, err := w.get(ctx, query)
	if err != nil {
		return err
	}
	defer body.Close()
	end.Reset(lasts + watchGrace)
	settles := time.AfterFunc(leastWatch, w.goesOn)
	defer settles.Stop()
	limited := &io.LimitedReader{R: body}
	begun, decoder := time.Now(), json.NewDecoder(limited)
	for {
		limited.N = w.maxPage
		var e event
		switch err := decoder.Decode(&e); {
		case errors.Is(err, io.EOF) && time.Since(begun) >= leastWatch:
			return nil
		case err != nil:
			if settles.Stop() {
				w.cuts.Add(1)
			}
			return fmt.Errorf("%w: %w", errCut, err)
		}
		if settles.Stop() {
			w.goesOn()
		}
		if err := w.take(&e); err != nil {
			return err
		}
	}
}

// take applies an event.
func (w *watcher) take(e *event) error {
	switch e.Type {
	case "ADDED", "MODIFIED", "DELETED", "BOOKMARK":
	case "ERROR":
		w.version = "" // later changes are not available, whatever the cause
		return statusOf(http.StatusInternalServerError, e.Object)
	default:
		return nil // from a later API
	}
	var p podObject
	if err := json.Unmarshal(e.Object, &p); err != nil {
		return fmt.Errorf("the watch of the pods has an object that is not a pod: %w", err)
	}
	if e.Type != "BOOKMARK" {
		w.change(&p, e.Type == "DELETED")
	}
	w.version = p.Metadata.ResourceVersion
	return nil
}

// get sends a request for pods, and returns the body of a good answer.
func (w *watcher) get(ctx context.Context, query url.Values) (io.ReadCloser, error) {
	query.Set("labelSelector", w.selector)
	if w.node != "" {
		query.Set("fieldSelector", "spec.nodeName="+w.node)
	}
	u := *w.base
	u.RawQuery = query.Encode()
	if w.client.Config.RateLimiter != nil {
		if err := w.client.Config.RateLimiter.Wait(ctx); err != nil {
			return nil, err
		}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	answer, err := w.client.HTTP.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		defer answer.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<10))
		return nil, statusOf(answer.StatusCode, text)
	}
	return answer.Body, nil
}

// statusOf returns the error of an answer, which may have a Status.
func statusOf(code int, body []byte) error {
	var status struct {
		Code    int
		Message string
	}
	if json.Unmarshal(body, &status) == nil && status.Code != 0 {
		code = status.Code
	}
	if code == http.StatusGone {
		return errGone
	}
	if status.Message == "" {
		status.Message = fmt.Sprintf("the answer is %d %s", code, http.StatusText(code))
	}
	return &statusError{code, status.Message}
}
