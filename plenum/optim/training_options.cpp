#include "plenum/optim/training_options.h"

#include "plenum/base/check.h"

namespace plenum::optim {
namespace {

// Beyond these no run is meant.
constexpr double kLargestRate = 100;
constexpr double kLeastEpsilon = 1e-30;
constexpr double kLargestNorm = 1e30;
constexpr double kLargestPower = 100;
constexpr double kLeastLayerDecay = 0.1;
constexpr double kLargestBeta = 0.9999999;
constexpr double kLeastDamping = 1e-12;
constexpr double kLargestDamping = 1e6;
constexpr std::int64_t kOldestFactors = 255;  // what ages in a schedule can say
constexpr std::int64_t kLongestRefresh = 1'000'000;
constexpr std::int64_t kLargestLimit = 8192;  // that a block of a GPU orthonormalises

void add_duration(base::OptionTable& options, const char* name, Duration& duration, const char* help) {
  options.add_parsed(
      name, duration, "DURATION", help,
      [](const std::string& text, const std::string& what) { return parse_duration(text, what); },
      [](const Duration& value) { return to_string(value); });
}

void add_optimizer(base::OptionTable& options, OptimizerOptions& optimizer) {
  options.add_choice(
      "optimizer", optimizer.kind,
      {{"adamw", OptimizerKind::AdamW},
       {"bert-adam", OptimizerKind::BertAdam},
       {"lamb", OptimizerKind::Lamb},
       {"muon", OptimizerKind::Muon},
       {"soap", OptimizerKind::Soap},
       {"kfac", OptimizerKind::Kfac}},
      "AdamW as in PyTorch, Adam as in the original BERT, LAMB, Muon or SOAP for the weights of "
      "layers with AdamW for everything else, or K-FAC with LAMB or AdamW beneath it");
  options.add("beta1", optimizer.beta1, 0.0, kLargestBeta, "Decay of the first moment of the gradient");
  options.add("beta2", optimizer.beta2, 0.0, kLargestBeta, "Decay of the second moment of the gradient");
  options.add("epsilon", optimizer.epsilon, kLeastEpsilon, 1.0,
              "Adam's epsilon; 1e-6 for bert-adam and lamb, 1e-8 for the others if not given");
  options.add("muon-momentum", optimizer.muon_momentum, 0.0, kLargestBeta,
              "Muon's momentum (Nesterov); beta1 and beta2 are of the AdamW beside it");
  options.add("soap-beta", optimizer.soap.beta, 0.0, kLargestBeta,
              "Decay of SOAP's moments and factors; beta1 and beta2 are of the AdamW beside it");
  options.add(
      "soap-every", optimizer.soap.every, std::int64_t{1}, kLongestRefresh,
      "Steps from one refresh of SOAP's eigenbases to the next; 10 if not given, unless --fill spreads "
      "them over bubbles (soap)");
  options.add("soap-limit", optimizer.soap.limit, std::int64_t{0}, kLargestLimit,
              "SOAP leaves sides of matrices that are larger than this as they are");
  options.add("weight-decay", optimizer.decay, 0.0, 1.0, "Weight decay; not of biases and layer norms");
  options.add("layer-decay", optimizer.layer_decay, kLeastLayerDecay, 1.0,
              "Learning rate of a layer as a part of that of the layer above, down to the embeddings; heads "
              "have all of it; 1 for the same rate everywhere (adamw, bert-adam, lamb)");
  options.add("clip-norm", optimizer.clip_norm, 0.0, kLargestNorm,
              "Clip the norm of the gradient to this; 0 does not clip");
}

void add_kfac(base::OptionTable& options, OptimizerOptions& optimizer) {
  options.add_choice(
      "kfac-base", optimizer.kfac_base,
      {{"lamb", OptimizerKind::Lamb}, {"adamw", OptimizerKind::AdamW}, {"muon", OptimizerKind::Muon}},
      "What updates with the gradients that K-FAC has preconditioned (kfac)");
  options.add("kfac-damping", optimizer.kfac.damping, kLeastDamping, kLargestDamping,
              "Damping of the factors, relative to their size (kfac)");
  options.add("kfac-every", optimizer.kfac.every, std::int64_t{1}, kOldestFactors,
              "Steps from one refresh of the factors and their inverses to the next; 1 if not given, unless "
              "--fill spreads them over bubbles (kfac)");
  options.add("kfac-average", optimizer.kfac.average, 0.0, kLargestBeta,
              "Part of the factors that a running average keeps at a refresh; those of one step alone if not "
              "given (kfac)");
}

void add_learning_rate(base::OptionTable& options, LearningRateOptions& learning_rate) {
  options.add("learning-rate", learning_rate.peak, 0.0, kLargestRate,
              "Learning rate after the warmup; by the size of the model if not given");
  base::Option& schedule = options.add_choice(
      "lr-schedule", learning_rate.schedule,
      {{"constant", LearningRateSchedule::Constant},
       {"linear", LearningRateSchedule::Linear},
       {"bert-linear", LearningRateSchedule::BertLinear},
       {"polynomial", LearningRateSchedule::Polynomial},
       {"cosine", LearningRateSchedule::Cosine},
       {"wsd", LearningRateSchedule::Wsd}},
      "How the learning rate falls: bert-linear counts from step 0, linear from the end of the "
      "warm-up; wsd is warm-up, stable, decay");
  schedule.former_name = "schedule";
  add_duration(
      options, "warmup", learning_rate.warmup,
      "How long the learning rate grows: 1000 steps, 1e8tok, 5000sp, 0.1ep or 0.06dur (share of the run)");
  add_duration(options, "decay-duration", learning_rate.decay, "How long it falls at the end (wsd)");
  options.add("power", learning_rate.power, 0.0, kLargestPower, "Exponent (polynomial)");
  options.add_fraction("final-ratio", learning_rate.final_ratio,
                       "The least learning rate as a share of the greatest");
}

}  // namespace

base::OptionTable TrainingOptions::table() {
  base::OptionTable options("optimizer");
  add_optimizer(options, optimizer);
  add_kfac(options, optimizer);
  add_learning_rate(options, learning_rate);
  return options;
}

void TrainingOptions::check() const {
  base::require(learning_rate.peak.value_or(1) > 0, "learning-rate must be positive: {}",
                learning_rate.peak.value_or(0));
  base::require(optimizer.layer_decay == 1 || !has_layer_update(optimizer.update_kind()),
                "layer-decay is for adamw, bert-adam and lamb, also beneath kfac; leave it out with muon and "
                "soap, which update the matrices of all layers together: {}",
                optimizer.layer_decay);
}

}  // namespace plenum::optim
