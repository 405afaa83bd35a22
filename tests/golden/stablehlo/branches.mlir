module @branches attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<i1>, %arg1: tensor<i32>, %arg2: tensor<f32>) -> (tensor<2xf32>, tensor<f32>, tensor<f32>) {
    %4, %5 = "stablehlo.if"(%arg0) ({
      %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<2xf32>} : () -> tensor<2xf32>
      "stablehlo.return"(%0, %arg2) : (tensor<2xf32>, tensor<f32>) -> ()
    }, {
      %1 = "stablehlo.broadcast_in_dim"(%arg2) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<2xf32>
      %2 = "stablehlo.constant"() {value = dense<10.0> : tensor<f32>} : () -> tensor<f32>
      %3 = "stablehlo.multiply"(%arg2, %2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%1, %3) : (tensor<2xf32>, tensor<f32>) -> ()
    }) : (tensor<i1>) -> (tensor<2xf32>, tensor<f32>)
    %8 = "stablehlo.case"(%arg1) ({
      "stablehlo.return"(%arg2) : (tensor<f32>) -> ()
    }, {
      %6 = "stablehlo.constant"() {value = dense<100.0> : tensor<f32>} : () -> tensor<f32>
      %7 = "stablehlo.multiply"(%arg2, %6) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%7) : (tensor<f32>) -> ()
    }) : (tensor<i32>) -> tensor<f32>
    "func.return"(%4, %5, %8) : (tensor<2xf32>, tensor<f32>, tensor<f32>) -> ()
  }
}
