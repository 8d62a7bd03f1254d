package diag

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// look returns the content of each file in a Folder of dir, and the links not followed.
func look(t *testing.T, dir fs.FS) (map[string]string, []string) {
	t.Helper()
	f := Folder[string]{
		Dir: dir, MaxFiles: 100, MaxBytes: 100,
		Accept: func(string) bool { return true },
		Parse:  func(_ string, text []byte) string { return string(text) },
	}
	if err := f.Look(); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	f.Each(func(name, content string) { found[name] = content })
	return found, slices.Sorted(slices.Values(f.outside))
}

// TestLinks: links within the directory are followed, links that lead out in any way are
// not.
func TestLinks(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "jobs")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Mkdir(dir, 0o755))
	secret := filepath.Join(top, "secret")
	must(os.WriteFile(secret, []byte("secret"), 0o600))
	must(os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600))
	for name, target := range map[string]string{
		"inside": "file", "nowhere": "none", "absolute": secret, "above": "../secret", "back": "../jobs/file",
		"chain": "above", "circle": "circle", "top": "/", "void": "/dev/zero",
	} {
		must(os.Symlink(target, filepath.Join(dir, name)))
	}
	found, outside := look(t, Directory(dir))
	if want := map[string]string{"file": "text", "inside": "text"}; !maps.Equal(found, want) {
		t.Errorf("read %q, want %q", found, want)
	}
	if want := []string{"above", "absolute", "back", "chain", "circle", "top", "void"}; !slices.Equal(outside, want) {
		t.Errorf("not followed are %q, want %q", outside, want)
	}
	link := filepath.Join(top, "link")
	must(os.Symlink(dir, link))
	if _, err := Directory(link + "/").Open("."); err == nil || !strings.Contains(err.Error(), "it is a link") {
		t.Errorf("with a slash behind it: %v", err)
	}
	for mode, want := range map[os.FileMode]string{0o755: "it is a link", 0o775: "others may write to it", 0o757: "others may write to it"} {
		must(os.Chmod(dir, mode))
		of := dir
		if mode == 0o755 {
			of = link
		}
		if _, err := Directory(of).Open("."); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%o: %v, want %s", mode, err, want)
		}
	}
}

// TestPipeInThePlaceOfAFile: a pipe does not block a Look.
func TestPipeInThePlaceOfAFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "7"), 0o600); err != nil {
		t.Fatal(err)
	}
	done := make(chan map[string]string, 1)
	go func() {
		found, _ := look(t, Directory(dir))
		done <- found
	}()
	select {
	case found := <-done:
		if len(found) > 0 {
			t.Errorf("read %q from a pipe", found)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("a pipe without a writer blocks Look")
	}
}
