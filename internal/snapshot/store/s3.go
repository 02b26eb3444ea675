package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"gocloud.dev/blob"
	"gocloud.dev/blob/s3blob"

	"github.com/memcached-operator/memcached-operator/internal/snapshot/wire"
)

// Limits of requests to S3: see doc.go.
const (
	dialTimeout   = 10 * time.Second
	answerTimeout = 30 * time.Second
	idleTimeout   = time.Minute
	attempts      = 4
	maxBackoff    = 5 * time.Second
)

// roleSession names the program in the log of the provider.
const roleSession = "memcached-operator"

// defaultRegion is Amazon's own default; most other servers ignore the region.
const defaultRegion = "us-east-1"

// dial opens a connection, for at most as long as its context lasts.
type dial func(ctx context.Context, network, address string) (net.Conn, error)

func openS3(ctx context.Context, s wire.S3, d dial) (*blob.Bucket, error) {
	httpClient, err := newHTTPClient(s.CAFile, d)
	if err != nil {
		return nil, err
	}
	region := s.Region
	if region == "" {
		region = defaultRegion
	}
	keys, err := credentialsFromEnvironment(region, httpClient)
	if err != nil {
		return nil, err
	}
	// Not the SDK's default configuration, which reads files in the home directory and
	// requests credentials from the node's metadata service.
	options := s3.Options{
		Region:      region,
		Credentials: keys,
		HTTPClient:  httpClient,
		Retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			o.MaxAttempts = attempts
			o.MaxBackoff = maxBackoff
			// The SDK would retry these as connection errors.
			permanent := retry.IsErrorRetryableFunc(func(err error) aws.Ternary {
				if isUntrusted(err) || isNotTLS(err) {
					return aws.FalseTernary
				}
				return aws.UnknownTernary
			})
			o.Retryables = append([]retry.IsErrorRetryable{permanent}, o.Retryables...)
		}),
		// Many servers support no checksum but MD5, and a snapshot has its own.
		RequestChecksumCalculation: aws.RequestChecksumCalculationWhenRequired,
		ResponseChecksumValidation: aws.ResponseChecksumValidationWhenRequired,
	}
	if s.Endpoint != "" {
		options.BaseEndpoint = aws.String(strings.TrimSuffix(s.Endpoint, "/"))
		// Its certificate and DNS name need not include buckets.
		options.UsePathStyle = true
	}
	bucket, err := s3blob.OpenBucket(ctx, s3.New(options), s.Bucket, &s3blob.Options{
		RequestChecksumCalculation: options.RequestChecksumCalculation,
	})
	if err != nil {
		return nil, Failure(err, "opening the bucket "+s.Bucket)
	}
	if prefix := strings.Trim(s.Prefix, "/"); prefix != "" {
		bucket = blob.PrefixedBucket(bucket, prefix+"/")
	}
	if err := checkAccess(ctx, bucket); err != nil {
		_ = bucket.Close() // nothing was written
		where := "Amazon S3"
		if s.Endpoint != "" {
			where = s.Endpoint
		}
		return nil, Failure(err, "opening the bucket "+s.Bucket+" at "+where)
	}
	return bucket, nil
}

// credentialsFromEnvironment returns the keys of a Secret, or the role that the pod's
// ServiceAccount may assume by a token that the platform injected.
func credentialsFromEnvironment(region string, httpClient *http.Client) (aws.CredentialsProvider, error) {
	// A Secret that was created from a file often ends with a line break.
	get := func(name string) string { return strings.TrimSpace(os.Getenv(name)) }
	id, secret := get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY")
	if role, token := get("AWS_ROLE_ARN"), get("AWS_WEB_IDENTITY_TOKEN_FILE"); id == "" && role != "" && token != "" {
		options := sts.Options{Region: region, HTTPClient: httpClient}
		if endpoint := get("AWS_ENDPOINT_URL_STS"); endpoint != "" {
			options.BaseEndpoint = &endpoint
		}
		// Each token is read when it is needed, as the kubelet renews it.
		return aws.NewCredentialsCache(stscreds.NewWebIdentityRoleProvider(sts.New(options), role, stscreds.IdentityTokenFile(token),
			func(o *stscreds.WebIdentityRoleOptions) { o.RoleSessionName = roleSession })), nil
	}
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": id, "AWS_SECRET_ACCESS_KEY": secret} {
		if value == "" {
			return nil, wire.FailFinally(wire.ReasonStoreAccessDenied,
				"the credentials lack %s; add the keys AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the Secret in credentialsSecretName; "+
					"with serviceAccountName, let your platform inject AWS_ROLE_ARN and AWS_WEB_IDENTITY_TOKEN_FILE, on Amazon EKS by an annotation of the ServiceAccount", name)
		}
	}
	return credentials.NewStaticCredentialsProvider(id, secret, get("AWS_SESSION_TOKEN")), nil
}

// newHTTPClient returns a client that trusts the CA bundle in caFile, by default the
// system's, and uses the proxy of the environment.
func newHTTPClient(caFile string, d dial) (*http.Client, error) {
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if caFile != "" {
		pem, err := os.ReadFile(caFile)
		if err != nil {
			return nil, wire.FailFinally(wire.ReasonStoreCertificateInvalid, "reading the CA bundle: %w; add it as the key ca.crt to the Secret in caSecretName", err)
		}
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(pem) {
			return nil, wire.FailFinally(wire.ReasonStoreCertificateInvalid, "the key ca.crt of the Secret in caSecretName contains no PEM certificate; add the CA bundle")
		}
	}
	useOwnProxy()
	transport := &http.Transport{
		Proxy:           http.ProxyFromEnvironment,
		TLSClientConfig: trust,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			conn, err := d(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return idleConn{conn}, nil
		},
		TLSHandshakeTimeout:   dialTimeout,
		ResponseHeaderTimeout: answerTimeout,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       idleTimeout,
		MaxIdleConnsPerHost:   32, // more than a run has requests at a time
	}
	return &http.Client{
		Transport: transport,
		// Amazon redirects to the bucket's region, where the signature is invalid.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// useOwnProxy makes http.ProxyFromEnvironment, which reads the environment once, return the
// proxy of the store's Secret.
func useOwnProxy() {
	if own := strings.TrimSpace(os.Getenv(wire.ProxyVariable)); own != "" {
		_ = os.Setenv("HTTP_PROXY", own) // the name is valid
		_ = os.Setenv("HTTPS_PROXY", own)
	}
}

// idleConn fails after idleTimeout without a byte. A write also extends the deadline of
// a waiting read, because the answer follows a long request.
type idleConn struct{ net.Conn }

func (c idleConn) Read(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c idleConn) Write(p []byte) (int, error) {
	if err := c.SetDeadline(time.Now().Add(idleTimeout)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}
