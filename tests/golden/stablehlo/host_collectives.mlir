module @host_collectives attributes {mhlo.num_replicas = 4 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32>, %arg1: tensor<i32>) -> (tensor<2xf32>, tensor<i32>, tensor<2xf32>, tensor<4xi32>) {
    %0 = "stablehlo.replica_id"() : () -> tensor<ui32>
    %1 = "stablehlo.convert"(%0) : (tensor<ui32>) -> tensor<f32>
    %2 = "stablehlo.constant"() {value = dense<10.0> : tensor<f32>} : () -> tensor<f32>
    %3 = "stablehlo.multiply"(%1, %2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2xf32>
    %5 = "stablehlo.add"(%arg0, %4) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %6, %7 = "stablehlo.custom_call"(%5, %arg1) {call_target_name = "sluice_all_reduce", api_version = 4 : i32, has_side_effect = true, backend_config = {op = "sum", program = 171 : i64, site = 0 : i64}, output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>, #stablehlo.output_operand_alias<output_tuple_indices = [1], operand_index = 1, operand_tuple_indices = []>]} : (tensor<2xf32>, tensor<i32>) -> (tensor<2xf32>, tensor<i32>)
    %8 = "stablehlo.custom_call"(%6) {call_target_name = "sluice_all_reduce", api_version = 4 : i32, has_side_effect = true, backend_config = {op = "max", program = 171 : i64, site = 1 : i64, groups = array<i64: 0, 1, 2, 3>, group_size = 2 : i64}} : (tensor<2xf32>) -> tensor<2xf32>
    %9 = "stablehlo.custom_call"(%arg1) {call_target_name = "sluice_all_gather", api_version = 4 : i32, has_side_effect = true, backend_config = {program = 171 : i64, site = 2 : i64}} : (tensor<i32>) -> tensor<4xi32>
    "func.return"(%6, %7, %8, %9) : (tensor<2xf32>, tensor<i32>, tensor<2xf32>, tensor<4xi32>) -> ()
  }
}
