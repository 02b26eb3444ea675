// Command image builds and pushes images without a container daemon, where
// docker or podman is not at hand:
//
//	go run . build -f DOCKERFILE -t REFERENCE -o FILE.tar [--build-arg NAME=VALUE]... CONTEXT
//	go run . push FILE.tar REFERENCE
//
// It reads the instructions of a Dockerfile that only put files and words
// together: ARG, FROM, COPY, LABEL, USER, EXPOSE, ENTRYPOINT and CMD, in one
// stage. What has to run something (RUN, a second stage) is an error: no image
// is better than one that lacks a step. The same inputs give the same image.
package main
