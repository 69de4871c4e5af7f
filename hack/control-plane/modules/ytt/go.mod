// Written by repin.sh; do not edit.
module carto.run/hack/control-plane/ytt

go 1.26.0

tool carvel.dev/ytt/cmd/ytt

require carvel.dev/ytt v0.50.0

require (
	github.com/BurntSushi/toml v1.2.1
	github.com/aws/aws-lambda-go v1.41.0
	github.com/cppforlife/cobrautil v0.0.0-20200514214827-bb86e6965d72
	github.com/cppforlife/go-cli-ui v0.0.0-20200505234325-512793797f05
	github.com/google/gofuzz v1.2.0
	github.com/hashicorp/go-version v1.6.0
	github.com/k14s/difflib v0.0.0-20201117154628-0c031775bf57
	github.com/k14s/starlark-go v0.0.0-20200720175618-3a5c849cc368
	github.com/spf13/cobra v1.7.0
	github.com/stretchr/testify v1.8.4
	gopkg.in/check.v1 v1.0.0-20190902080502-41f04d3bba15
)
require (
	github.com/davecgh/go-spew v1.1.1 // indirect
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/kr/pretty v0.2.0 // indirect
	github.com/kr/text v0.1.0 // indirect
	github.com/pmezard/go-difflib v1.0.0 // indirect
	github.com/spf13/pflag v1.0.5 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)
