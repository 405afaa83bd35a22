module @locations attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2xf32> {tf.aliasing_output = 0 : i32}, %arg1: tensor<2xf32> {jax.buffer_donor = true}) -> (tensor<2xf32>, tensor<2xf32>, tensor<f32>) {
    %0 = "stablehlo.add"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> loc("layer1.0.conv1/aten::add")
    %1 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32> loc("a \22quoted\22 back\5Cslash, a new\0Aline and \C3\A9")
    %3 = "stablehlo.reduce"(%0, %1) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %2 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%2) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<2xf32>, tensor<f32>) -> tensor<f32> loc("a \22quoted\22 back\5Cslash, a new\0Aline and \C3\A9")
    %4 = "stablehlo.optimization_barrier"(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
    "func.return"(%0, %4, %3) : (tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> ()
  }
}
