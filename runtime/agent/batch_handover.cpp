#include "runtime/agent/batch_handover.h"

#include <utility>

namespace hetero::agent {

BatchHandover::Handed BatchHandover::Hand(const BatchPart& part, Pictures pictures,
                                          feed::Batch* batch, BatchAnswer* answer) {
  BatchArena& arena = *options_.arena;
  const SampleLayout& layout =
      batch->ticket.split == job::Split::kTrain ? options_.training : options_.validation;
  answer->fields = FieldsOf(layout, part);
  answer->forgotten = files_.Forget();
  Handed handed;
  std::shared_ptr<const feed::MemoryFile> file;
  if (pictures == Pictures::kStay) file = batch->images.file();
  if (file != nullptr && file != options_.arena) {
    const PassedFiles::Passed passed = files_.Pass(file);
    FieldLayout& image = answer->fields.front();
    image.file = passed.number;
    image.offset = batch->images.data() - file->begin();
    handed.slabs.push_back(arena.GiveEmpty());
    handed.slabs.push_back(std::move(batch->images));
    if (passed.is_new) {
      answer->new_file = NewFile{.number = passed.number, .bytes = file->size()};
      handed.file = std::move(file);
    }
  } else if (pictures != Pictures::kCopyPart) {
    handed.slabs.push_back(arena.Give(std::move(batch->images)));
  } else {
    handed.slabs.push_back(arena.GiveCopy(batch->images.data() + ImageBytes(part.first, layout),
                                          ImageBytes(part.count, layout)));
  }
  answer->slot = *arena.SlotOf(handed.slabs.front());
  WriteFields(*batch, part, answer->fields, arena.slot(answer->slot));
  return handed;
}

}  // namespace hetero::agent
