#include "runtime/feed/ticket_client.h"
