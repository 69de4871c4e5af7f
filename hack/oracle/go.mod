module carto.run/hack/oracle

go 1.26.0

require (
	github.com/valyala/fasttemplate v1.2.2
	gopkg.in/yaml.v3 v3.0.1
	k8s.io/client-go v0.36.0
)

require github.com/valyala/bytebufferpool v1.0.0 // indirect
