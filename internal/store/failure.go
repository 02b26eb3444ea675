package store

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"

	"github.com/memcached-operator/memcached-operator/api/v1alpha1"
	"github.com/memcached-operator/memcached-operator/internal/snapshotapi"
)

// kinds of errors, the first that matches goes.
var kinds = []struct {
	reason string
	final  bool
	is     func(error) bool
	advice string // what it means and what to do
}{
	{v1alpha1.ReasonJobFailed, false, isCancelled,
		"it was stopped before its end"},

	{v1alpha1.ReasonStoreCertificate, true, isUntrusted,
		"the store's certificate is not trusted; put its authority's into the key ca.crt of the Secret that caSecret names, and name the server as the certificate does"},
	{v1alpha1.ReasonStoreCertificate, true, isNotTLS,
		"the store does not speak TLS there as it was asked to; check the endpoint's port, and whether it is https:// or http://"},

	{v1alpha1.ReasonStoreFull, true, isFull,
		"the store is full; make room, with shorter retention or a larger volume or quota"},
	{v1alpha1.ReasonStoreReadOnly, true, func(err error) bool { return errors.Is(err, syscall.EROFS) },
		"the volume is read-only; use a claim and a volume that can be written"},

	{v1alpha1.ReasonStoreNotFound, true, func(err error) bool { return isAPIError(err, "NoSuchBucket", "InvalidBucketName") },
		"there is no such bucket; make it, or mend its name or the endpoint"},
	{v1alpha1.ReasonStoreNotFound, true, isElsewhere,
		"the bucket is of another region; set region to the bucket's own"},
	{v1alpha1.ReasonStoreNotFound, true, func(err error) bool { return errors.Is(err, syscall.ENOTDIR) },
		"a file is where the folder should be; name another folder"},

	{v1alpha1.ReasonStoreAccessDenied, true, func(err error) bool { return isAPIError(err, "RequestTimeTooSkewed", "RequestExpired") },
		"the clocks of the node and of the store differ by minutes; set them"},
	{v1alpha1.ReasonStoreAccessDenied, true, isDenied,
		"the store denies access; check the credentials in the Secret and what they allow: to list, read, write and delete"},
	{v1alpha1.ReasonStoreAccessDenied, true, func(err error) bool {
		return errors.Is(err, fs.ErrPermission)
	},
		"the volume denies access; it must be writable for the Job's user, as by its fsGroup"},

	{v1alpha1.ReasonStoreUnreachable, false, isUnreachable,
		"the store does not answer; check the endpoint, that the server runs, and that network policies and proxies let the Job reach it"},
}

// Failure returns a *snapshotapi.Failure for an error of a bucket that Open
// returned, or nil for none. Its text is what was being done, what was told and what
// to do. What is a Failure already stays as it is.
func Failure(err error, doing string) error {
	if err == nil {
		return nil
	}
	if f := snapshotapi.AsFailure(err); f != nil {
		return err
	}
	for _, k := range kinds {
		if k.is(err) {
			return &snapshotapi.Failure{Reason: k.reason, Final: k.final, Err: told{err, doing + ": " + brief(err) + ": " + k.advice}}
		}
	}
	return &snapshotapi.Failure{Reason: v1alpha1.ReasonStoreFailed, Err: told{err, doing + ": " + brief(err)}}
}

// told is an error in other words.
type told struct {
	err  error
	text string
}

func (t told) Error() string { return t.text }
func (t told) Unwrap() error { return t.err }

// brief is what a person needs of an error of the SDK, which names each of its
// layers and the request's number.
func brief(err error) string {
	if errors.Is(err, errNoAnswer) {
		return errNoAnswer.Error()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		if api.ErrorMessage() == "" || api.ErrorMessage() == api.ErrorCode() {
			return api.ErrorCode()
		}
		return api.ErrorCode() + ": " + strings.TrimRight(api.ErrorMessage(), ".")
	}
	if code := status(err); code != 0 {
		return "the answer was " + strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
	}
	var request *url.Error
	if errors.As(err, &request) {
		return request.Err.Error()
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Error()
	}
	return err.Error()
}

// isAPI says whether the store answered with an error of S3's.
func isAPI(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api)
}

func isAPIError(err error, codes ...string) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(codes, api.ErrorCode())
}

// status is the HTTP status of the store's answer, or 0.
func status(err error) int {
	var response *awshttp.ResponseError
	if errors.As(err, &response) && response.Response != nil && response.Response.Response != nil {
		return response.HTTPStatusCode()
	}
	return 0
}

func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, errAborted)
}

func isUntrusted(err error) bool {
	var unverified *tls.CertificateVerificationError
	return errors.As(err, &unverified)
}

// isNotTLS also tells a server that wanted TLS and got none: it answers with a status
// alone, and S3 with a code too.
func isNotTLS(err error) bool {
	var record tls.RecordHeaderError
	var alert tls.AlertError
	return errors.As(err, &record) || errors.As(err, &alert) || errors.Is(err, http.ErrSchemeMismatch) ||
		status(err) == http.StatusBadRequest && !isAPI(err)
}

func isFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) ||
		status(err) == http.StatusInsufficientStorage ||
		isAPIError(err, "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage") {
		return true
	}
	// Servers that keep objects in files pass on what their system said.
	var api smithy.APIError
	return errors.As(err, &api) && (strings.Contains(api.ErrorMessage(), syscall.ENOSPC.Error()) || strings.Contains(api.ErrorMessage(), syscall.EDQUOT.Error()))
}

func isElsewhere(err error) bool {
	return isAPIError(err, "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException") ||
		status(err) == http.StatusMovedPermanently || status(err) == http.StatusTemporaryRedirect
}

func isDenied(err error) bool {
	return status(err) == http.StatusForbidden || status(err) == http.StatusUnauthorized ||
		isAPIError(err, "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "AllAccessDisabled", "AccountProblem")
}

func isUnreachable(err error) bool {
	switch status(err) {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case 0, http.StatusOK, http.StatusPartialContent: // none, or one that broke off
	default:
		return false
	}
	// Not net.Error, which each error of the system is, of a disk's too.
	var request *url.Error
	var network *net.OpError
	var name *net.DNSError
	return errors.As(err, &request) || errors.As(err, &network) || errors.As(err, &name) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF)
}
