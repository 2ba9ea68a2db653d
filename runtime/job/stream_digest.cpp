#include "runtime/job/stream_digest.h"
