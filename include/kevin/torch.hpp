#ifndef KEVIN_TORCH_HPP
#define KEVIN_TORCH_HPP

/// Floor 4: LibTorch policies, the GRPO trainer and the training loop. Include it before other headers of LibTorch (see
/// kevin/tasks/torch.hpp).

#include "kevin/tasks/torch.hpp"

#include "kevin/agent/checkpoint.hpp"
#include "kevin/agent/choice_policy.hpp"
#include "kevin/agent/grpo_trainer.hpp"
#include "kevin/agent/json.hpp"
#include "kevin/agent/objective.hpp"
#include "kevin/agent/trainable_policy.hpp"
#include "kevin/agent/training.hpp"
#include "kevin/agent/trajectory_log.hpp"

#endif  // KEVIN_TORCH_HPP
