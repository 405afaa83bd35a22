module @sluice attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x6x8x4xf32>, %arg1: tensor<2xui64>) -> (tensor<2x6x8x4xf32>, tensor<2x6x8xf32>, tensor<2xui64>) {
    %0 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 0>, limit_indices = array<i64: 1>, strides = array<i64: 1>} : (tensor<2xui64>) -> tensor<1xui64>
    %1 = "stablehlo.reshape"(%0) : (tensor<1xui64>) -> tensor<ui64>
    %2 = "stablehlo.slice"(%arg1) {start_indices = array<i64: 1>, limit_indices = array<i64: 2>, strides = array<i64: 1>} : (tensor<2xui64>) -> tensor<1xui64>
    %3 = "stablehlo.reshape"(%2) : (tensor<1xui64>) -> tensor<ui64>
    %4 = "stablehlo.convert"(%3) : (tensor<ui64>) -> tensor<ui32>
    %5 = "stablehlo.constant"() {value = dense<0> : tensor<ui32>} : () -> tensor<ui32>
    %6 = "stablehlo.add"(%4, %5) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %7 = "stablehlo.constant"() {value = dense<32> : tensor<ui64>} : () -> tensor<ui64>
    %8 = "stablehlo.shift_right_logical"(%3, %7) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %9 = "stablehlo.convert"(%8) : (tensor<ui64>) -> tensor<ui32>
    %10 = "stablehlo.shift_right_logical"(%1, %7) : (tensor<ui64>, tensor<ui64>) -> tensor<ui64>
    %11 = "stablehlo.convert"(%10) : (tensor<ui64>) -> tensor<ui32>
    %12 = "stablehlo.convert"(%1) : (tensor<ui64>) -> tensor<ui32>
    %13 = "stablehlo.constant"() {value = dense<17> : tensor<ui32>} : () -> tensor<ui32>
    %14 = "stablehlo.shift_right_logical"(%9, %13) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %15 = "stablehlo.xor"(%9, %14) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %16 = "stablehlo.constant"() {value = dense<3982152891> : tensor<ui32>} : () -> tensor<ui32>
    %17 = "stablehlo.multiply"(%15, %16) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %18 = "stablehlo.constant"() {value = dense<11> : tensor<ui32>} : () -> tensor<ui32>
    %19 = "stablehlo.shift_right_logical"(%17, %18) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %20 = "stablehlo.xor"(%17, %19) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %21 = "stablehlo.constant"() {value = dense<2890668881> : tensor<ui32>} : () -> tensor<ui32>
    %22 = "stablehlo.multiply"(%20, %21) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %23 = "stablehlo.constant"() {value = dense<15> : tensor<ui32>} : () -> tensor<ui32>
    %24 = "stablehlo.shift_right_logical"(%22, %23) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %25 = "stablehlo.xor"(%22, %24) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %26 = "stablehlo.constant"() {value = dense<830770091> : tensor<ui32>} : () -> tensor<ui32>
    %27 = "stablehlo.multiply"(%25, %26) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %28 = "stablehlo.constant"() {value = dense<14> : tensor<ui32>} : () -> tensor<ui32>
    %29 = "stablehlo.shift_right_logical"(%27, %28) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %30 = "stablehlo.xor"(%27, %29) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %31 = "stablehlo.xor"(%12, %30) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %32 = "stablehlo.constant"() {value = dense<2654435769> : tensor<ui32>} : () -> tensor<ui32>
    %33 = "stablehlo.multiply"(%6, %32) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %34 = "stablehlo.add"(%11, %33) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %35 = "stablehlo.shift_right_logical"(%34, %13) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %36 = "stablehlo.xor"(%34, %35) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %37 = "stablehlo.multiply"(%36, %16) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %38 = "stablehlo.shift_right_logical"(%37, %18) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %39 = "stablehlo.xor"(%37, %38) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %40 = "stablehlo.multiply"(%39, %21) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %41 = "stablehlo.shift_right_logical"(%40, %23) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %42 = "stablehlo.xor"(%40, %41) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %43 = "stablehlo.multiply"(%42, %26) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %44 = "stablehlo.shift_right_logical"(%43, %28) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %45 = "stablehlo.xor"(%43, %44) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %46 = "stablehlo.xor"(%45, %30) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %47 = "stablehlo.add"(%31, %46) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %48 = "stablehlo.constant"() {value = dense<2221713035> : tensor<ui32>} : () -> tensor<ui32>
    %49 = "stablehlo.multiply"(%47, %48) : (tensor<ui32>, tensor<ui32>) -> tensor<ui32>
    %50 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<2x2x6x8xui32>
    %51 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<2x2x6x8xui32>
    %52 = "stablehlo.constant"() {value = dense<8> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %53 = "stablehlo.multiply"(%51, %52) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %54 = "stablehlo.add"(%50, %53) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %55 = "stablehlo.iota"() {iota_dimension = 1 : i64} : () -> tensor<2x2x6x8xui32>
    %56 = "stablehlo.constant"() {value = dense<48> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %57 = "stablehlo.multiply"(%55, %56) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %58 = "stablehlo.add"(%54, %57) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %59 = "stablehlo.iota"() {iota_dimension = 0 : i64} : () -> tensor<2x2x6x8xui32>
    %60 = "stablehlo.constant"() {value = dense<96> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %61 = "stablehlo.multiply"(%59, %60) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %62 = "stablehlo.add"(%58, %61) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %63 = "stablehlo.broadcast_in_dim"(%31) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x6x8xui32>
    %64 = "stablehlo.xor"(%62, %63) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %65 = "stablehlo.constant"() {value = dense<17> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %66 = "stablehlo.shift_right_logical"(%64, %65) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %67 = "stablehlo.xor"(%64, %66) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %68 = "stablehlo.constant"() {value = dense<3982152891> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %69 = "stablehlo.multiply"(%67, %68) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %70 = "stablehlo.broadcast_in_dim"(%46) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x6x8xui32>
    %71 = "stablehlo.xor"(%69, %70) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %72 = "stablehlo.constant"() {value = dense<11> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %73 = "stablehlo.shift_right_logical"(%71, %72) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %74 = "stablehlo.xor"(%71, %73) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %75 = "stablehlo.constant"() {value = dense<2890668881> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %76 = "stablehlo.multiply"(%74, %75) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %77 = "stablehlo.broadcast_in_dim"(%49) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<2x2x6x8xui32>
    %78 = "stablehlo.xor"(%76, %77) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %79 = "stablehlo.constant"() {value = dense<15> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %80 = "stablehlo.shift_right_logical"(%78, %79) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %81 = "stablehlo.xor"(%78, %80) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %82 = "stablehlo.constant"() {value = dense<830770091> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %83 = "stablehlo.multiply"(%81, %82) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %84 = "stablehlo.constant"() {value = dense<14> : tensor<2x2x6x8xui32>} : () -> tensor<2x2x6x8xui32>
    %85 = "stablehlo.shift_right_logical"(%83, %84) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %86 = "stablehlo.xor"(%83, %85) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %87 = "stablehlo.add"(%86, %64) : (tensor<2x2x6x8xui32>, tensor<2x2x6x8xui32>) -> tensor<2x2x6x8xui32>
    %88 = "stablehlo.constant"() {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
    %149 = "stablehlo.constant"() {value = dense<0.0> : tensor<2x6x8x4xf32>} : () -> tensor<2x6x8x4xf32>
    %150 = "stablehlo.constant"() {value = dense<0.0> : tensor<2x6x8xf32>} : () -> tensor<2x6x8xf32>
    %151 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %229, %230, %231 = "stablehlo.while"(%151, %149, %150) ({
    ^bb0(%b4: tensor<i32>, %b5: tensor<2x6x8x4xf32>, %b6: tensor<2x6x8xf32>):
      %152 = "stablehlo.constant"() {value = dense<4> : tensor<i32>} : () -> tensor<i32>
      %153 = "stablehlo.compare"(%b4, %152) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%153) : (tensor<i1>) -> ()
    }, {
    ^bb0(%b7: tensor<i32>, %b8: tensor<2x6x8x4xf32>, %b9: tensor<2x6x8xf32>):
      %154 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
      %155 = "stablehlo.divide"(%b7, %154) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %156 = "stablehlo.remainder"(%b7, %154) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %157 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
      %158 = "stablehlo.multiply"(%155, %157) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %159 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
      %160 = "stablehlo.multiply"(%156, %159) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %161 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
      %162 = "stablehlo.dynamic_slice"(%arg0, %158, %160, %161, %161) {slice_sizes = array<i64: 1, 3, 8, 4>} : (tensor<2x6x8x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x8x4xf32>
      %163 = "stablehlo.dynamic_slice"(%arg0, %158, %160, %161, %161) {slice_sizes = array<i64: 1, 3, 8, 4>} : (tensor<2x6x8x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x8x4xf32>
      %164 = "stablehlo.dynamic_slice"(%arg0, %158, %160, %161, %161) {slice_sizes = array<i64: 1, 3, 8, 4>} : (tensor<2x6x8x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x3x8x4xf32>
      %165 = "stablehlo.dynamic_slice"(%87, %161, %158, %160, %161) {slice_sizes = array<i64: 2, 1, 3, 8>} : (tensor<2x2x6x8xui32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x1x3x8xui32>
      %166 = "stablehlo.dot_general"(%162, %163) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [3]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x3x8x4xf32>, tensor<1x3x8x4xf32>) -> tensor<1x3x8x8xf32>
      %167 = "stablehlo.constant"() {value = dense<0.5> : tensor<1x3x8x8xf32>} : () -> tensor<1x3x8x8xf32>
      %168 = "stablehlo.multiply"(%166, %167) : (tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
      %169 = "stablehlo.iota"() {iota_dimension = 2 : i64} : () -> tensor<1x3x8x8xi32>
      %170 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<1x3x8x8xi32>
      %171 = "stablehlo.compare"(%170, %169) {comparison_direction = #stablehlo<comparison_direction LE>} : (tensor<1x3x8x8xi32>, tensor<1x3x8x8xi32>) -> tensor<1x3x8x8xi1>
      %172 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<1x3x8x8xf32>} : () -> tensor<1x3x8x8xf32>
      %173 = "stablehlo.select"(%171, %168, %172) : (tensor<1x3x8x8xi1>, tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
      %174 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
      %176 = "stablehlo.reduce"(%173, %174) ({
      ^bb0(%b10: tensor<f32>, %b11: tensor<f32>):
        %175 = "stablehlo.maximum"(%b10, %b11) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%175) : (tensor<f32>) -> ()
      }) {dimensions = array<i64: 3>} : (tensor<1x3x8x8xf32>, tensor<f32>) -> tensor<1x3x8xf32>
      %177 = "stablehlo.broadcast_in_dim"(%176) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x3x8xf32>) -> tensor<1x3x8x8xf32>
      %178 = "stablehlo.subtract"(%173, %177) : (tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
      %179 = "stablehlo.exponential"(%178) : (tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
      %180 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
      %182 = "stablehlo.reduce"(%179, %180) ({
      ^bb0(%b12: tensor<f32>, %b13: tensor<f32>):
        %181 = "stablehlo.add"(%b12, %b13) : (tensor<f32>, tensor<f32>) -> tensor<f32>
        "stablehlo.return"(%181) : (tensor<f32>) -> ()
      }) {dimensions = array<i64: 3>} : (tensor<1x3x8x8xf32>, tensor<f32>) -> tensor<1x3x8xf32>
      %183 = "stablehlo.iota"() {iota_dimension = 3 : i64} : () -> tensor<1x3x8x8xui32>
      %184 = "stablehlo.constant"() {value = dense<2654435769> : tensor<1x3x8x8xui32>} : () -> tensor<1x3x8x8xui32>
      %185 = "stablehlo.multiply"(%183, %184) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %186 = "stablehlo.slice"(%165) {start_indices = array<i64: 0, 0, 0, 0>, limit_indices = array<i64: 1, 1, 3, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x1x3x8xui32>) -> tensor<1x1x3x8xui32>
      %187 = "stablehlo.reshape"(%186) : (tensor<1x1x3x8xui32>) -> tensor<1x3x8xui32>
      %188 = "stablehlo.broadcast_in_dim"(%187) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x3x8xui32>) -> tensor<1x3x8x8xui32>
      %189 = "stablehlo.add"(%185, %188) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %190 = "stablehlo.slice"(%165) {start_indices = array<i64: 1, 0, 0, 0>, limit_indices = array<i64: 2, 1, 3, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x1x3x8xui32>) -> tensor<1x1x3x8xui32>
      %191 = "stablehlo.reshape"(%190) : (tensor<1x1x3x8xui32>) -> tensor<1x3x8xui32>
      %192 = "stablehlo.broadcast_in_dim"(%191) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x3x8xui32>) -> tensor<1x3x8x8xui32>
      %193 = "stablehlo.constant"() {value = dense<16> : tensor<1x3x8x8xui32>} : () -> tensor<1x3x8x8xui32>
      %194 = "stablehlo.shift_right_logical"(%189, %193) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %195 = "stablehlo.xor"(%189, %194) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %196 = "stablehlo.constant"() {value = dense<2146121005> : tensor<1x3x8x8xui32>} : () -> tensor<1x3x8x8xui32>
      %197 = "stablehlo.multiply"(%195, %196) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %198 = "stablehlo.constant"() {value = dense<15> : tensor<1x3x8x8xui32>} : () -> tensor<1x3x8x8xui32>
      %199 = "stablehlo.shift_right_logical"(%197, %198) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %200 = "stablehlo.xor"(%197, %199) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %201 = "stablehlo.xor"(%200, %192) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %202 = "stablehlo.constant"() {value = dense<2221713035> : tensor<1x3x8x8xui32>} : () -> tensor<1x3x8x8xui32>
      %203 = "stablehlo.multiply"(%201, %202) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %204 = "stablehlo.constant"() {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
      %205 = "stablehlo.subtract"(%204, %88) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %206 = "stablehlo.constant"() {value = dense<16777216.0> : tensor<f32>} : () -> tensor<f32>
      %207 = "stablehlo.multiply"(%205, %206) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %208 = "stablehlo.ceil"(%207) : (tensor<f32>) -> tensor<f32>
      %209 = "stablehlo.convert"(%208) : (tensor<f32>) -> tensor<ui32>
      %210 = "stablehlo.broadcast_in_dim"(%209) {broadcast_dimensions = array<i64>} : (tensor<ui32>) -> tensor<1x3x8x8xui32>
      %211 = "stablehlo.constant"() {value = dense<8> : tensor<1x3x8x8xui32>} : () -> tensor<1x3x8x8xui32>
      %212 = "stablehlo.shift_right_logical"(%203, %211) : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xui32>
      %213 = "stablehlo.compare"(%212, %210) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<1x3x8x8xui32>, tensor<1x3x8x8xui32>) -> tensor<1x3x8x8xi1>
      %214 = "stablehlo.divide"(%204, %205) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      %215 = "stablehlo.compare"(%205, %180) {comparison_direction = #stablehlo<comparison_direction EQ>} : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %216 = "stablehlo.select"(%215, %180, %214) : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
      %217 = "stablehlo.constant"() {value = dense<0.0> : tensor<1x3x8x8xf32>} : () -> tensor<1x3x8x8xf32>
      %218 = "stablehlo.broadcast_in_dim"(%216) {broadcast_dimensions = array<i64>} : (tensor<f32>) -> tensor<1x3x8x8xf32>
      %219 = "stablehlo.multiply"(%179, %218) : (tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
      %220 = "stablehlo.select"(%213, %219, %217) : (tensor<1x3x8x8xi1>, tensor<1x3x8x8xf32>, tensor<1x3x8x8xf32>) -> tensor<1x3x8x8xf32>
      %221 = "stablehlo.dot_general"(%220, %164) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0, 1], rhs_batching_dimensions = [0, 1], lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [2]>, precision_config = [#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]} : (tensor<1x3x8x8xf32>, tensor<1x3x8x4xf32>) -> tensor<1x3x8x4xf32>
      %222 = "stablehlo.broadcast_in_dim"(%182) {broadcast_dimensions = array<i64: 0, 1, 2>} : (tensor<1x3x8xf32>) -> tensor<1x3x8x4xf32>
      %223 = "stablehlo.divide"(%221, %222) : (tensor<1x3x8x4xf32>, tensor<1x3x8x4xf32>) -> tensor<1x3x8x4xf32>
      %224 = "stablehlo.log"(%182) : (tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
      %225 = "stablehlo.add"(%176, %224) : (tensor<1x3x8xf32>, tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
      %226 = "stablehlo.dynamic_update_slice"(%b8, %223, %158, %160, %161, %161) : (tensor<2x6x8x4xf32>, tensor<1x3x8x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x6x8x4xf32>
      %227 = "stablehlo.dynamic_update_slice"(%b9, %225, %158, %160, %161) : (tensor<2x6x8xf32>, tensor<1x3x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x6x8xf32>
      %228 = "stablehlo.add"(%b7, %157) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%228, %226, %227) : (tensor<i32>, tensor<2x6x8x4xf32>, tensor<2x6x8xf32>) -> ()
    }) : (tensor<i32>, tensor<2x6x8x4xf32>, tensor<2x6x8xf32>) -> (tensor<i32>, tensor<2x6x8x4xf32>, tensor<2x6x8xf32>)
    "func.return"(%230, %231, %arg1) : (tensor<2x6x8x4xf32>, tensor<2x6x8xf32>, tensor<2xui64>) -> ()
  }
}
