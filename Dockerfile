# A static binary on an empty image; it needs no root, no shell and no libc.
FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make build

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /src/kpulse-proxy /kpulse-proxy
USER 65534:65534
EXPOSE 9401
ENTRYPOINT ["/kpulse-proxy"]
