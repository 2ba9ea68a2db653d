// Package volcano names the types whose definitions the cluster's tests apply.
package volcano

import _ "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
