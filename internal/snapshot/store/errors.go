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

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// classifiers of errors, of which the first match counts.
var classifiers = []struct {
	reason string
	final  bool
	match  func(error) bool
	advice string // what the error means and what to do
}{
	{wire.ReasonJobFailed, false, func(err error) bool { return errors.Is(err, context.Canceled) },
		"the Job was stopped before it finished"},

	{wire.ReasonStoreCertificateInvalid, true, isUntrusted,
		"the store's certificate is not trusted; add its CA bundle as the key ca.crt to the Secret in caSecretName, and use a server name that the certificate contains"},
	{wire.ReasonStoreCertificateInvalid, true, isNotTLS,
		"only one side uses TLS; check the endpoint's port, and whether it is https:// or http://"},

	{wire.ReasonStoreFull, true, isFull,
		"the store is full; make room, with shorter retention or a larger volume or quota"},
	{wire.ReasonStoreReadOnly, true, func(err error) bool { return errors.Is(err, syscall.EROFS) },
		"the volume is read-only; use a writable claim and volume"},

	{wire.ReasonStoreNotFound, true, func(err error) bool { return isAPIError(err, "NoSuchBucket", "InvalidBucketName") },
		"the bucket doesn't exist; create it, or correct its name or the endpoint"},
	{wire.ReasonStoreNotFound, true, isOtherRegion,
		"the bucket is in another region; set region to that of the bucket"},
	{wire.ReasonStoreNotFound, true, func(err error) bool { return errors.Is(err, syscall.ENOTDIR) },
		"a file has the name of the directory; use another directory"},

	{wire.ReasonStoreAccessDenied, true, func(err error) bool { return isAPIError(err, "RequestTimeTooSkewed", "RequestExpired") },
		"the clocks of the node and of the store differ by minutes; synchronize them"},
	{wire.ReasonStoreAccessDenied, true, isDenied,
		"the store denies access; check the credentials in the Secret, or the role of the ServiceAccount, and their permissions to list, read, write and delete"},
	{wire.ReasonStoreAccessDenied, true, func(err error) bool { return errors.Is(err, fs.ErrPermission) },
		"the volume denies access; make its directory writable for the Job's user 65532, or set fsGroup of the store if the volume contains nothing but snapshots"},

	{wire.ReasonStoreUnreachable, false, isUnreachable,
		"the store doesn't answer; check the endpoint, that the server is running, and that network policies and proxies allow the connection"},
}

// Failure returns a *wire.Failure for an error of a bucket, and nil for nil. Its text is
// the action, the error and what to do. A Failure is returned unchanged.
func Failure(err error, action string) error {
	if err == nil {
		return nil
	}
	if f := wire.AsFailure(err); f != nil {
		return err
	}
	for _, c := range classifiers {
		if c.match(err) {
			return &wire.Failure{Reason: c.reason, Final: c.final, Err: describedError{err, action + ": " + summarize(err) + ": " + c.advice}}
		}
	}
	return &wire.Failure{Reason: wire.ReasonStoreFailed, Err: describedError{err, action + ": " + summarize(err)}}
}

type describedError struct {
	err  error
	text string
}

func (d describedError) Error() string { return d.text }
func (d describedError) Unwrap() error { return d.err }

// summarize returns what the user needs of an error of the SDK, which contains each of
// its layers and the request's ID.
func summarize(err error) string {
	if errors.Is(err, errNoAnswer) {
		return errNoAnswer.Error()
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		if api.ErrorMessage() == "" || api.ErrorMessage() == api.ErrorCode() {
			return api.ErrorCode()
		}
		return api.ErrorCode() + ": " + strings.TrimRight(api.ErrorMessage(), ".")
	}
	if code := httpStatus(err); code != 0 {
		return "the answer was " + strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
	}
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err.Error()
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Error()
	}
	return err.Error()
}

// isAPIError reports whether the store answered with one of these errors of the S3 API.
func isAPIError(err error, codes ...string) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(codes, api.ErrorCode())
}

func httpStatus(err error) int {
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok && answer.Response != nil && answer.Response.Response != nil {
		return answer.HTTPStatusCode()
	}
	return 0
}

func isUntrusted(err error) bool {
	_, unverified := errors.AsType[*tls.CertificateVerificationError](err)
	return unverified
}

// isNotTLS also reports a server that requires TLS: it answers a plain request with a
// status, but without a code of the S3 API.
func isNotTLS(err error) bool {
	_, record := errors.AsType[tls.RecordHeaderError](err)
	_, alert := errors.AsType[tls.AlertError](err)
	_, api := errors.AsType[smithy.APIError](err)
	return record || alert || errors.Is(err, http.ErrSchemeMismatch) || httpStatus(err) == http.StatusBadRequest && !api
}

func isFull(err error) bool {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) ||
		httpStatus(err) == http.StatusInsufficientStorage ||
		isAPIError(err, "QuotaExceeded", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "InsufficientStorage") {
		return true
	}
	// Servers that store objects in files pass on the error of their system.
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && (strings.Contains(api.ErrorMessage(), syscall.ENOSPC.Error()) || strings.Contains(api.ErrorMessage(), syscall.EDQUOT.Error()))
}

func isOtherRegion(err error) bool {
	return isAPIError(err, "PermanentRedirect", "TemporaryRedirect", "AuthorizationHeaderMalformed", "IllegalLocationConstraintException") ||
		httpStatus(err) == http.StatusMovedPermanently || httpStatus(err) == http.StatusTemporaryRedirect
}

func isDenied(err error) bool {
	return httpStatus(err) == http.StatusForbidden || httpStatus(err) == http.StatusUnauthorized ||
		isAPIError(err, "InvalidIdentityToken", "IDPRejectedClaim", "ExpiredTokenException", "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "AllAccessDisabled", "AccountProblem")
}

func isUnreachable(err error) bool {
	switch httpStatus(err) {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	case 0, http.StatusOK, http.StatusPartialContent: // no answer, or a truncated one
	default:
		return false
	}
	// Not net.Error, which every system error implements, also those of a disk.
	_, request := errors.AsType[*url.Error](err)
	_, network := errors.AsType[*net.OpError](err)
	_, name := errors.AsType[*net.DNSError](err)
	return request || network || name || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrUnexpectedEOF)
}
