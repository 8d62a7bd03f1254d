# An image of the program, without a shell, run by a user other than root. Its base is one of:
#   scratch               nothing but the program: every backend but nvml (the default)
#   a glibc of Debian 12  the program with cgo: --backend=nvml too
#   NVIDIA's image of DCGM, with RUN_AS=0:0: dcgmi too, for the place of dcgm-exporter in the gpu-operator
# make image gives the arguments for both; deploy/README.md says more.
ARG BASE=scratch

# Debian 12's C library is the oldest in Go's images: a program built on it runs on all
# newer ones.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
ARG BASE
ARG BUILDARCH
ARG TARGETARCH
# Go compiles for any processor; cgo needs a C compiler for it.
RUN case "$BASE $TARGETARCH" in \
	scratch\ * | *" $BUILDARCH") ;; \
	*\ arm64) apt-get update && apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;; \
	*\ amd64) apt-get update && apt-get install -y --no-install-recommends gcc-x86-64-linux-gnu libc6-dev-amd64-cross ;; \
	*) echo "no C compiler is known for $TARGETARCH; build with BASE=scratch"; exit 1 ;; \
	esac
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# The build context has no .git to read these from.
ARG VERSION=unknown
ARG REVISION
ARG CREATED
RUN case "$BASE" in scratch) cgo=0 ;; *) cgo=1 ;; esac && \
	make bundle DIR=/out CGO_ENABLED="$cgo" GOARCH="$TARGETARCH" VERSION="$VERSION" REVISION="$REVISION" BRANCH=HEAD CREATED="$CREATED"

# Older buildah and podman keep the build's platform unless told the image's.
FROM --platform=$TARGETPLATFORM $BASE
# "all" makes NVIDIA's container runtime mount the host's driver library.
ARG NVIDIA_VISIBLE_DEVICES
ENV NVIDIA_VISIBLE_DEVICES=$NVIDIA_VISIBLE_DEVICES NVIDIA_DRIVER_CAPABILITIES=utility
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ /
COPY deploy/image/counters.csv /etc/dcgm-exporter/default-counters.csv
COPY deploy/image/counters.csv /etc/dcgm-exporter/dcp-metrics-included.csv
ARG VERSION=unknown
ARG REVISION
ARG CREATED
LABEL org.opencontainers.image.title="kpulse-proxy" \
	org.opencontainers.image.description="GPU metrics: real utilization, workload class and health in front of dcgm-exporter" \
	org.opencontainers.image.source="https://github.com/kpulse/kpulse-proxy" \
	org.opencontainers.image.licenses="Apache-2.0" \
	org.opencontainers.image.version="$VERSION" \
	org.opencontainers.image.revision="$REVISION" \
	org.opencontainers.image.created="$CREATED"
ARG RUN_AS=65534:65534
USER $RUN_AS
EXPOSE 9401
# Checks that the process serves, not its GPUs' health; Kubernetes has its own probes.
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["/kpulse-proxy", "check", "alive", "--timeout=5s"]
ENTRYPOINT ["/kpulse-proxy"]
