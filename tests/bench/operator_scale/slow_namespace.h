#pragma once

namespace hetero::bench {

// Jobs of one namespace, whose calls take long, and one job after another in others: how much
// longer those take to have their pods than with a namespace whose calls are quick.
struct SlowNamespaceOptions {
  int jobs = 100;   // of four pods, in that namespace, applied at once
  int others = 30;  // jobs of other namespaces, two a second
  double most = 2;  // times as long
};
// Each call about the namespace takes 100 ms longer, and every third one is answered by 429.
int RunSlowApi(const SlowNamespaceOptions& options);
// A validating webhook takes 3 s for each of its pods.
int RunSlowWebhook(const SlowNamespaceOptions& options);

}  // namespace hetero::bench
