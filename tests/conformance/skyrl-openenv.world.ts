import { defineActionEnvironment, type Environment, z } from '@palestra/environment-kit';

/** Environments with the wire shapes of the four environments of SkyRL that are not bundled (docs/reference/skyrl.md#action-conversion). Their values are made up. */
const made = { splits: ['train'], tasks: () => [{}] };

const openspiel = defineActionEnvironment({
  ...made,
  name: 'openspiel_env',
  action: z.strictObject({ action_id: z.int(), game_name: z.string(), game_params: z.record(z.string(), z.unknown()) }),
  reset: () => ({ observation: { info_state: [0, 1], legal_actions: [0, 1, 2], game_phase: 'initial', current_player_id: 0 } }),
  step: ({ action_id: id, game_name: game }) => ({
    observation: {
      info_state: Array.from({ length: 50 }, () => 0.5),
      legal_actions: [id],
      game_phase: game,
      current_player_id: 0,
      opponent_last_action: 2,
    },
    reward: 1,
    done: true,
  }),
});

const atari = defineActionEnvironment({
  ...made,
  name: 'atari-env',
  action: z.strictObject({
    action_id: z.int(),
    game_name: z.string(),
    obs_type: z.enum(['rgb', 'grayscale', 'ram']),
    full_action_space: z.boolean(),
  }),
  reset: () => ({
    observation: { screen: [0], screen_shape: [1], legal_actions: [0, 2], lives: 3, episode_frame_number: 0, frame_number: 0 },
  }),
  step: ({ action_id: id, obs_type: type }) => ({
    observation: { screen: [type.length, id], screen_shape: [2], legal_actions: [0], lives: 2, episode_frame_number: 4, frame_number: 8 },
    reward: null,
  }),
});

const sumo = defineActionEnvironment({
  ...made,
  name: 'sumo_rl-env',
  action: z.strictObject({ phase_id: z.int(), ts_id: z.string() }),
  // It has a field of the name `observation` within the observation.
  reset: () => ({ observation: { observation: [0.25], observation_shape: [1], action_mask: [1, 0], sim_time: 0 } }),
  step: ({ phase_id: id, ts_id: signal }) => ({
    observation: { observation: [id, Number(signal)], observation_shape: [2], action_mask: [], sim_time: 5 },
    reward: -0.5,
    metadata: { hidden: 'from clients of this generation' },
  }),
});

const finrl = defineActionEnvironment({
  ...made,
  name: 'finrl',
  action: z.strictObject({ actions: z.array(z.number()) }),
  create: () => ({ wealth: 1_000 }),
  reset: ({ state }) => ({ observation: { state: [state.wealth], portfolio_value: state.wealth, date: '2020-01-02' } }),
  step({ actions }, { state }) {
    state.wealth += actions.reduce((sum, action) => sum + action, 0);
    return { observation: { state: [state.wealth, Number.NaN], portfolio_value: state.wealth, date: '2020-01-03' }, reward: 0.25 };
  },
});

/** By the name under which each is registered; - and _ as an owner might write them. */
export const shapes: Environment[] = [openspiel, atari, sumo, finrl];
