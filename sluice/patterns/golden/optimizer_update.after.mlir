module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<256x256xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<1xf32>, %arg2: tensor<256x256xf32>) -> (tensor<256x256xf32>) {
    %4 = "stablehlo.custom_call"(%arg0, %arg2, %arg1) {call_target_name = "sluice_update", api_version = 4 : i32, has_side_effect = false, backend_config = {code = array<i64: 2, 0, 1, 2, 2, 1, 2, 1, 0, 3, 4>, numbers = array<i64: 0>}, output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []>]} : (tensor<256x256xf32>, tensor<256x256xf32>, tensor<1xf32>) -> tensor<256x256xf32> loc("update of 1 tensor")
    "func.return"(%4) : (tensor<256x256xf32>) -> ()
  }
}
