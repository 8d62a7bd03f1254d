# Two images of the program, both without a shell and for a user who is not root:
#   static  nothing but the program: every backend but nvml (what is built by default)
#   nvml    the program with cgo, on the C library: --backend=nvml too
# make image gives the arguments; deploy/README.md says more.

# Debian 12's C library is the oldest that images of Go come with: what is built here runs
# on it and on all that are newer.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS source
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .

FROM --platform=$BUILDPLATFORM source AS build-nvml
ARG BUILDARCH
ARG TARGETARCH
# Go compiles for any processor, but cgo takes a C compiler that does.
RUN case "$TARGETARCH" in \
	"$BUILDARCH") ;; \
	arm64) apt-get update && apt-get install -y --no-install-recommends gcc-aarch64-linux-gnu libc6-dev-arm64-cross ;; \
	amd64) apt-get update && apt-get install -y --no-install-recommends gcc-x86-64-linux-gnu libc6-dev-amd64-cross ;; \
	*) echo "no C compiler is known for $TARGETARCH; build the target static"; exit 1 ;; \
	esac
# There is no .git here to read them from.
ARG VERSION=unknown
ARG REVISION
ARG CREATED
RUN make bundle DIR=/out CGO_ENABLED=1 GOARCH="$TARGETARCH" VERSION="$VERSION" REVISION="$REVISION" BRANCH=HEAD CREATED="$CREATED"

FROM gcr.io/distroless/base-nossl-debian12 AS nvml
# The driver's library is the host's: NVIDIA's container runtime brings it here.
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=utility
COPY --from=source /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build-nvml /out/ /
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
USER 65534:65534
EXPOSE 9401
# Whether the process serves, not how its GPUs are; Kubernetes has probes of its own.
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["/kpulse-proxy", "check", "alive", "--timeout=5s"]
ENTRYPOINT ["/kpulse-proxy"]

FROM --platform=$BUILDPLATFORM source AS build-static
ARG TARGETARCH
ARG VERSION=unknown
ARG REVISION
ARG CREATED
RUN make bundle DIR=/out CGO_ENABLED=0 GOARCH="$TARGETARCH" VERSION="$VERSION" REVISION="$REVISION" BRANCH=HEAD CREATED="$CREATED"

FROM scratch AS static
COPY --from=source /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build-static /out/ /
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
USER 65534:65534
EXPOSE 9401
# Whether the process serves, not how its GPUs are; Kubernetes has probes of its own.
HEALTHCHECK --interval=30s --timeout=10s --start-period=10s CMD ["/kpulse-proxy", "check", "alive", "--timeout=5s"]
ENTRYPOINT ["/kpulse-proxy"]
