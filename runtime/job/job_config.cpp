#include "runtime/job/job_config.h"
