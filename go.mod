module github.com/memcached-operator/memcached-operator

go 1.26.0
