// Command image builds and pushes images without a container daemon, where
// docker or podman is not at hand:
//
//	go run . build -f DOCKERFILE -t REFERENCE -o FILE.tar [--build-arg NAME=VALUE]... [--stage NAME=FOLDER]... CONTEXT
//	go run . push FILE.tar REFERENCE
//
// It reads the instructions of a Dockerfile that only put files and words
// together: ARG, FROM, COPY, LABEL, USER, EXPOSE, ENTRYPOINT and CMD. What has to
// run something is an error: no image is better than one that lacks a step. An
// earlier stage, which is there to run something, is not run either: the caller
// has done its work and gives a folder with what it makes. The same inputs give
// the same image.
package main
