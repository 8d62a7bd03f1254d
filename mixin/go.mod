module github.com/kpulse/kpulse-proxy/mixin

go 1.26.0

require github.com/google/go-jsonnet v0.22.0

require (
	github.com/google/go-cmp v0.7.0 // indirect
	go.yaml.in/yaml/v2 v2.4.4 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/crypto v0.56.0 // indirect
	golang.org/x/sys v0.47.0 // indirect
	sigs.k8s.io/yaml v1.6.0 // indirect
)

replace github.com/kpulse/kpulse-proxy => ../
