#include "base/tls.h"
