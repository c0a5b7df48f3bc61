#pragma once

#include "bench/models/model.h"

/// Factories of the built-in models; models() lists them.
namespace sinter::bench {

/// The setting of that name. Every row lists the settings that its builder asks for. Throws UserError where a whole
/// number is asked for and there is none.
[[nodiscard]] double value_of(const Settings& settings, std::string_view name);
[[nodiscard]] int64_t integer_of(const Settings& settings, std::string_view name);

/// Draws parameters so that every one of them shows in the result: matrices and filters are normal with variance
/// 1 / fan-in, vectors named "weight" uniform in [0.5, 1], other vectors uniform in [-0.1, 0.1].
void randomise(torch::nn::Module& module);

/// x * 0.5 * (1 + erf(x / 1.41421)) over a tensor of any shape.
Model make_gelu(const Settings& settings);
/// [batch, 768] -> [batch, 768]: two linear layers around an exact GELU.
Model make_gelu_mlp(const Settings& settings);
/// [batch, 3, 224, 224] -> [batch, 1000]. He et al., Deep Residual Learning for Image Recognition, with torchvision's
/// placement of the stride in the 3x3 convolution.
Model make_resnet50(const Settings& settings);

/// [batch, 3, height, width] -> [batch, 1000]. Simonyan and Zisserman, Very Deep Convolutional Networks. Setting:
/// `hidden`, the width of the classifier's inner layers.
Model make_vgg16(const Settings& settings);
/// [batch, 3, image_size, image_size] -> [batch, 1000]. Dosovitskiy et al., An Image is Worth 16x16 Words. Settings:
/// `depth` encoder layers; `patch_dropout`, the part of the patches that training drops (timm's PatchDropout).
Model make_vit_b16(const Settings& settings);
/// [batch, 3, height, width] -> [batch, 1000]. Liu et al., A ConvNet for the 2020s. Settings: `width` of the first
/// stage; `depth` blocks of the third one.
Model make_convnext_l(const Settings& settings);
/// [batch, 3, height, width] -> [batch, 1000]. Liu et al., Swin Transformer, tiny and base. Setting: `depth` blocks of
/// the third stage.
Model make_swin_t(const Settings& settings);
Model make_swin_b(const Settings& settings);
/// [batch, tokens, 256] -> the same: LSTM layers with 512 hidden units, then a linear one. Setting: `layers`.
Model make_lstm(const Settings& settings);
/// i64[batch, tokens], 0 <= token < 8192, -> [batch, tokens, 8192]: GPT-2's blocks. All but the last `steps` tokens go
/// at once, those one by one through a cache of keys and values. Settings: `depth` blocks; `steps` < tokens.
Model make_gpt(const Settings& settings);
/// [batch, tokens, 512] -> the same: each token goes to two of the experts, of which each takes a bounded number of
/// tokens. Fedus et al., Switch Transformers, with two choices. Setting: `experts` >= 2.
Model make_moe(const Settings& settings);

}  // namespace sinter::bench
