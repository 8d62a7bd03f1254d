// Command wheel writes a Python wheel that contains nothing but a static program and its licences, so that uvx, pipx and
// pip install it: wheel BUNDLE PLATFORM VERSION DIST, with a folder of make bundle, a platform such as linux-amd64, the
// version of the release, and the folder to write into. SOURCE_DATE_EPOCH is the time of all files in it.
package main

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// tags are the platforms in Python's terms. A static program runs on any C library; Go sets the oldest macOS.
var tags = map[string]string{
	"linux-amd64":  "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	"linux-arm64":  "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	"darwin-amd64": "macosx_12_0_x86_64",
	"darwin-arm64": "macosx_12_0_arm64",
}

const metadata = `Metadata-Version: 2.1
Name: kpulse-proxy
Version: %s
Summary: GPU metrics: real utilization, workload class and health, on a terminal and for Prometheus
Home-page: https://github.com/kpulse/kpulse-proxy
License: Apache-2.0
Keywords: gpu,nvidia,dcgm,prometheus,exporter
Requires-Python: >=3.8
Description-Content-Type: text/plain

This wheel contains the static program kpulse-proxy, for every backend but nvml. On a node with GPUs and dcgm-exporter or
DCGM, "uvx kpulse-proxy --tui" shows them on the terminal; "uvx kpulse-proxy --tui --backend=replay" plays a demo.
`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "wheel:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if len(args) != 4 || tags[args[1]] == "" || err != nil {
		return fmt.Errorf("usage: SOURCE_DATE_EPOCH=SECONDS wheel BUNDLE PLATFORM VERSION DIST, with a platform of %v", tags)
	}
	bundle, tag, version := args[0], tags[args[1]], pythonVersion(args[2])
	info := "kpulse_proxy-" + version + ".dist-info/"
	var file bytes.Buffer
	archive, record := zip.NewWriter(&file), ""
	add := func(path string, mode os.FileMode, text []byte, err error) error {
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: path, Method: zip.Deflate, Modified: time.Unix(epoch, 0).UTC()}
		header.SetMode(mode)
		sum := sha256.Sum256(text)
		record += fmt.Sprintf("%s,sha256=%s,%d\n", path, base64.RawURLEncoding.EncodeToString(sum[:]), len(text))
		w, err := archive.CreateHeader(header)
		if err == nil {
			_, err = w.Write(text)
		}
		return err
	}
	program, err := os.ReadFile(filepath.Join(bundle, "kpulse-proxy"))
	if err := add("kpulse_proxy-"+version+".data/scripts/kpulse-proxy", 0o755, program, err); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "THIRD-PARTY"} {
		text, err := os.ReadFile(filepath.Join(bundle, "licenses", name))
		if err := add(info+name, 0o644, text, err); err != nil {
			return err
		}
	}
	wheel := "Wheel-Version: 1.0\nGenerator: kpulse-proxy\nRoot-Is-Purelib: false\nTag: py3-none-" + strings.ReplaceAll(tag, ".", "\nTag: py3-none-") + "\n"
	err = errors.Join(add(info+"METADATA", 0o644, fmt.Appendf(nil, metadata, version), nil), add(info+"WHEEL", 0o644, []byte(wheel), nil))
	err = errors.Join(err, add(info+"RECORD", 0o644, []byte(record+info+"RECORD,,\n"), nil), archive.Close())
	return errors.Join(err, os.WriteFile(filepath.Join(args[3], "kpulse_proxy-"+version+"-py3-none-"+tag+".whl"), file.Bytes(), 0o644))
}

var release = regexp.MustCompile(`^v?(\d+(?:\.\d+)+)(?:-(alpha|beta|rc)\.?(\d+))?(?:-(.+))?$`)

// pythonVersion returns a version in the form of PEP 440: v1.2.3-rc.4 is 1.2.3rc4. What no release has, such as the
// commits since the last one, becomes a local version, which PyPI refuses.
func pythonVersion(version string) string {
	m := release.FindStringSubmatch(version)
	if m == nil {
		m = []string{"", "0", "", "", version}
	}
	public := m[1] + strings.NewReplacer("alpha", "a", "beta", "b").Replace(m[2]) + m[3]
	return strings.TrimSuffix(public+"+"+strings.ReplaceAll(m[4], "-", "."), "+")
}
