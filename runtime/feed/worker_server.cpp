#include "runtime/feed/worker_server.h"
