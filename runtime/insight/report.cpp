#include "runtime/insight/report.h"
