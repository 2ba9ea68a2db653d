#include "runtime/feed/trainer_stream.h"

#include <grpcpp/generic/generic_stub.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "base/status_macros.h"
#include "hetero/v1/feed.pb.h"
#include "runtime/handshake/build.h"

namespace hetero::feed {

TrainerStream::TrainerStream(Options options, Callbacks callbacks)
    : options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      open_memory_(
          [this](const v1::FrameHeader& header, int64_t bytes) { return Open(header, bytes); }) {}

TrainerStream::~TrainerStream() = default;

std::shared_ptr<TrainerStream> TrainerStream::Dial(const std::shared_ptr<grpc::Channel>& channel,
                                                   Options options, Callbacks callbacks) {
  const std::shared_ptr<TrainerStream> stream(
      new TrainerStream(std::move(options), std::move(callbacks)));
  stream->self_ = stream;
  stream->context_.AddMetadata(handshake::kMetadataKey,
                               handshake::ToMetadata(handshake::ThisBuild()));
  grpc::GenericStub stub(channel);
  stub.PrepareBidiStreamingCall(&stream->context_, kStreamMethod, grpc::StubOptions(),
                                stream.get());
  stream->AddHold();  // for the writes that start outside gRPC's callbacks
  stream->StartRead(&stream->frame_);
  stream->StartCall();
  return stream;
}

void TrainerStream::Offer() {
  const ReceiverContext context = {.address = options_.address,
                                   .peer = context_.peer(),
                                   .secured = options_.secured,
                                   .byte_budget = options_.byte_budget,
                                   .batch_bytes = options_.batch_bytes,
                                   .threads = options_.threads};
  auto offers = std::make_unique<v1::TicketRequest>();
  auto offered = std::make_unique<std::vector<Offered>>();
  for (const Transport* transport : options_.transports) {
    {
      const base::MutexLock lock(mutex_);
      unanswered_.push_back(transport);
    }
    std::unique_ptr<BatchReceiver> receiver = transport->receive(context, CallbacksOf(transport));
    const absl::Status made = receiver->Offer(offers.get());
    if (made.ok()) {
      offered->push_back({transport, std::move(receiver)});
      continue;
    }
    log::Info("a transport is not offered to a CPU worker", {{"transport", transport->name},
                                                             {"address", options_.address},
                                                             {"reason", made.message()}});
    const base::MutexLock lock(mutex_);
    std::erase(unanswered_, transport);
  }
  const base::MutexLock lock(mutex_);
  offered_ = std::move(offered);
  if (ended_ || offers->ByteSizeLong() == 0) return;
  offers_ = std::move(offers);
  if (!writing_) WriteNext();
}

BatchReceiver::Callbacks TrainerStream::CallbacksOf(const Transport* transport) {
  return {.on_accepted =
              [this, transport] {
                const base::MutexLock lock(mutex_);
                std::erase(unanswered_, transport);
              },
          .on_frame = [this, transport](Frame frame) { OnFrame(*transport, std::move(frame)); },
          .on_broken = [this](const absl::Status& status) { Break(status); },
          .open_memory = open_memory_};
}

absl::StatusOr<NamedMemory> TrainerStream::Open(const v1::FrameHeader& header, int64_t bytes) {
  if (header.memory_case() == v1::FrameHeader::MEMORY_NOT_SET) {
    return NamedMemory{options_.slabs ? options_.slabs(bytes) : Slab(bytes), ""};
  }
  const std::vector<Offered>* offered = nullptr;  // stays what it is until OnDone
  {
    const base::MutexLock lock(mutex_);
    offered = offered_.get();
  }
  if (offered == nullptr) return NoMemory(header, bytes);
  for (const auto& [transport, receiver] : *offered) {
    if (!receiver->Holds(header)) continue;
    HETERO_ASSIGN_OR_RETURN(Slab slab, receiver->Open(header, bytes));
    NamedMemory memory{std::move(slab), transport->name};
    if (!options_.moves_shared || options_.slabs == nullptr) return memory;
    Slab wanted = options_.slabs(bytes);
    if (wanted.shared()) memory.wanted = std::move(wanted);  // the heap is no better
    return memory;
  }
  return NoMemory(header, bytes);
}

void TrainerStream::OnFrame(const Transport& transport, Frame frame) const {
  if (frame.transport.empty()) frame.transport = transport.name;
  callbacks_.on_frame(std::move(frame));
}

void TrainerStream::Break(const absl::Status& reason) {
  {
    const base::MutexLock lock(mutex_);
    if (ended_) return;  // what ended it is known better
    if (broken_.ok()) broken_ = reason;
  }
  context_.TryCancel();
}

void TrainerStream::Send(const TicketRequest& request) {
  const base::MutexLock lock(mutex_);
  if (ended_) return;
  // While a message is being written, what comes next becomes one message. A worker reads what is
  // called back before what is issued, so a ticket that was not sent yet is called back here.
  for (const int64_t ticket : request.cancel) {
    const auto erased = std::erase_if(next_.issue, [&](const Ticket& t) { return t.id == ticket; });
    if (erased == 0) next_.cancel.push_back(ticket);
  }
  next_.issue.insert(next_.issue.end(), request.issue.begin(), request.issue.end());
  next_.fatal.insert(next_.fatal.end(), request.fatal.begin(), request.fatal.end());
  if (!writing_) WriteNext();
}

void TrainerStream::WriteNext() {
  if (next_.issue.empty() && next_.cancel.empty() && next_.fatal.empty() && offers_ == nullptr) {
    return;
  }
  request_ = EncodeRequest(next_, offers_.get());
  next_ = {};
  offers_.reset();
  writing_ = true;
  StartWrite(&request_);
}

void TrainerStream::Cancel() { context_.TryCancel(); }

void TrainerStream::OnReadInitialMetadataDone(bool ok) noexcept {
  if (!ok) return;
  if (absl::Status met = CheckWorker(); !met.ok()) return Break(met);
  Offer();
  callbacks_.on_up();
}

absl::Status TrainerStream::CheckWorker() const {
  const auto& metadata = context_.GetServerInitialMetadata();
  const auto told = metadata.find(handshake::kMetadataKey);
  const handshake::Build build =
      told == metadata.end() ? handshake::Build()
                             : handshake::FromMetadata({told->second.data(), told->second.size()});
  return handshake::CheckPeers(absl::StrCat("the CPU worker at ", options_.address), build,
                               "this trainer", handshake::ThisBuild());
}

void TrainerStream::OnReadDone(bool ok) noexcept {
  if (!ok) {
    const base::MutexLock lock(mutex_);
    ended_ = true;
    RemoveHold();
    return;
  }
  const Transport& of_the_stream = *options_.transports.back();
  const absl::Status decoded = DecodeFrames(
      frame_, open_memory_, [&](Frame frame) { OnFrame(of_the_stream, std::move(frame)); });
  frame_.Clear();
  if (!decoded.ok()) {
    // Where the next frame begins can no longer be trusted, nor which ticket this one answered; or
    // there was no memory to get that far.
    Break(decoded);
  }
  StartRead(&frame_);
}

void TrainerStream::OnWriteDone(bool ok) noexcept {
  const base::MutexLock lock(mutex_);
  writing_ = false;
  if (ended_ || !ok) return;  // after a failed write the read fails too
  WriteNext();
}

void TrainerStream::OnDone(const grpc::Status& status) noexcept {
  const std::vector<Offered>* offered = nullptr;
  {
    const base::MutexLock lock(mutex_);
    ended_ = true;
    offered = offered_.get();
  }
  Ending ending;
  if (offered != nullptr) {
    for (const Offered& one : *offered) one.receiver->End();  // no frame comes after on_down
    for (const Offered& one : *offered) ending.accepted.push_back(one.transport);
  }
  {
    const base::MutexLock lock(mutex_);
    ending.status = broken_;
    ending.unanswered = std::move(unanswered_);
  }
  std::erase_if(ending.accepted, [&](const Transport* transport) {
    return std::count(ending.unanswered.begin(), ending.unanswered.end(), transport) > 0;
  });
  if (ending.status.ok()) {
    ending.status =
        absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
  }
  const std::function<void(const Ending&)> on_down = callbacks_.on_down;
  self_.reset();  // this object may be gone from here on
  on_down(ending);
}

}  // namespace hetero::feed
