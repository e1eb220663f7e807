// Any bytes are either refused with gyre::error or are a file that keeps every promise of the format.
//
// covers: include/gyre/io/safetensors_header.hpp 90
// covers: include/gyre/io/json_scanner.hpp 90
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <gyre/io/safetensors.hpp>
#include <gyre/io/safetensors_writer.hpp>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

void promise(bool kept) {
  if (!kept) std::abort();
}

}  // namespace

// Most mutations change the header's length; unless its size is repaired now and then, all of them end at the first check.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most, unsigned seed) {
  size = LLVMFuzzerMutate(data, size, most);
  if (seed % 4 == 0 || size < 8) return size;
  const std::uint8_t* end = data + size;
  while (end > data + 8 && end[-1] != '}') --end;
  const std::uint64_t header = static_cast<std::uint64_t>(end - data) - 8;
  std::memcpy(data, &header, 8);
  return size;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes = std::as_bytes(std::span(data, size));
  try {
    const gyre::safetensors_reader reader(bytes, "input");
    // The tensors tile the data.
    std::vector<gyre::tensor_source> sources;
    std::vector<std::string> contents;
    std::uint64_t reached = 0;
    for (const gyre::stored_tensor& t : reader.tensors()) {
      promise(t.begin == reached && t.end >= t.begin);
      promise(t.end - t.begin == static_cast<std::uint64_t>(t.count()) * static_cast<std::uint64_t>(gyre::bits_of(t.type)) / 8);
      promise(reader.find(t.name) == &t);
      reached = t.end;
      std::string& content = contents.emplace_back(static_cast<std::size_t>(t.end - t.begin), '\0');
      reader.read_bytes(t, std::as_writable_bytes(std::span(content)));
      if (t.type == gyre::dtype::f16 || t.type == gyre::dtype::bf16 || t.type == gyre::dtype::f32 ||
          t.type == gyre::dtype::f64) {
        std::vector<float> values(static_cast<std::size_t>(t.count()));
        reader.read_converted<float>(t.name, t.shape, values);
      }
    }
    // What was understood, written again, is understood as the same.
    for (std::size_t i = 0; i < contents.size(); ++i)
      sources.emplace_back(reader.tensors()[i].name, reader.tensors()[i].type, reader.tensors()[i].shape, contents[i].data());
    const std::map<std::string, std::string> metadata(reader.metadata().begin(), reader.metadata().end());
    const std::string written = gyre::safetensors_bytes(sources, metadata);
    const gyre::safetensors_reader again(std::as_bytes(std::span(written)), "written");
    promise(again.metadata() == reader.metadata() && again.tensors().size() == sources.size());
    for (const gyre::tensor_source& t : sources) {
      const gyre::stored_tensor& found = again.at(t.name);
      promise(found.type == t.type && found.shape == t.shape);
      std::string content(static_cast<std::size_t>(found.end - found.begin), '\0');
      again.read_bytes(found, std::as_writable_bytes(std::span(content)));
      promise(content.empty() || std::memcmp(content.data(), t.data, content.size()) == 0);
    }
  } catch (const gyre::error& refusal) {
    promise(std::strstr(refusal.what(), "input: ") == refusal.what());  // names the file, and is about the input
  }
  return 0;
}
