# The operator's image: /manager, the operator, /agent, which an init container
# copies into each shard's pod, and /snapshot, which the Jobs of backups run.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
WORKDIR /src
# Apart from the sources, so that a change of them does not download again.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ENV CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH}
RUN go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/manager . && \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION -X runtime.godebugDefault=disablethp=1" -tags nethttpomithttp2 -o /out/agent ./cmd/agent && \
    go build -trimpath -ldflags "-s -w -X main.version=$VERSION" -o /out/snapshot ./cmd/snapshot

FROM gcr.io/distroless/static:nonroot
COPY --from=build /out/manager /out/agent /out/snapshot /
# Numeric, so that the kubelet can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/manager"]
